"""From files to files: read log lines, keep the errors, and write them to part files.

Part files become visible only when they are complete.

Output:
    part files: 1
    ERROR disk full
    ERROR no route to host
"""

import tempfile
from pathlib import Path

from firesteel.common import Encoder
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.file_system import (
    FileSink,
    FileSource,
    OutputFileConfig,
    StreamFormat,
)


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    with tempfile.TemporaryDirectory() as directory:
        logs, errors = Path(directory) / "logs", Path(directory) / "errors"
        logs.mkdir()
        (logs / "monday.log").write_text("INFO started\nERROR disk full\n")
        (logs / "tuesday.log").write_text("ERROR no route to host\nINFO stopped\n")

        source = FileSource.for_record_stream_format(
            StreamFormat.text_line_format(), str(logs)
        ).build()
        sink = (
            FileSink.for_row_format(str(errors), Encoder.simple_string_encoder())
            .with_output_file_config(OutputFileConfig.builder().with_part_suffix(".log").build())
            .build()
        )
        lines = env.from_source(source, None, "Logs")
        lines.filter(lambda line: line.startswith("ERROR")).sink_to(sink)
        env.execute("file to file")

        parts = sorted(errors.rglob("*.log"))
        print("part files:", len(parts))
        for line in sorted(line for part in parts for line in part.read_text().splitlines()):
            print(line)


if __name__ == "__main__":
    main()
