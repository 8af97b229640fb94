"""Recovery of a killed job: SIGKILL in the middle, then a restart from the last checkpoint.

This program starts itself as a child process that runs the job. The job numbers the readings of
each sensor, with state, and writes them to files. When the first files appear, the program kills
the child. A second child continues from the last checkpoint. In the end the files contain every
reading exactly once, numbered without gaps.

Output:
    the job is running
    it has written files: killed
    resumed from its last checkpoint
    finished: 3000 readings of 6 sensors, none lost, none twice
"""

import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from firesteel.common import Configuration, Encoder
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from firesteel.datastream.connectors.file_system import BucketAssigner, FileSink, RollingPolicy

READINGS, SENSORS = 3000, 6


def run_job(directory: str, resume: bool) -> None:
    configuration = Configuration.from_dict(
        {
            "execution.checkpointing.interval": "300 ms",
            "execution.checkpointing.dir": f"{directory}/checkpoints",
            # Retain checkpoints when the job is canceled. Those of a killed driver always remain.
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        }
    )
    if resume:
        # Firesteel restores the newest intact checkpoint of the job with this name.
        configuration.set_string("execution.state-recovery.path", f"{directory}/checkpoints")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    env.set_buffer_timeout(5)

    # The first child runs slowly, so that it can be killed.
    rate = RateLimiterStrategy.per_second(3000 if resume else 200)
    source = DataGeneratorSource(lambda index: (index % SENSORS, 1), READINGS, rate)
    readings = env.from_source(source, None, "Readings").uid("readings")
    numbered = readings.key_by(lambda reading: reading[0]).sum(1).uid("numbers")
    sink = (
        FileSink.for_row_format(f"{directory}/out", Encoder.simple_string_encoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        # A file becomes visible when its checkpoint completes.
        .with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
        .build()
    )
    numbered.map(lambda reading: f"{reading[0]} {reading[1]}").sink_to(sink).uid("files")
    env.execute("readings")


def start_child(directory: str, *arguments: str) -> subprocess.Popen[bytes]:
    # Spark logs many errors when its driver is killed. Write them to a file.
    with log_file(directory).open("ab") as log:
        return subprocess.Popen([sys.executable, __file__, directory, *arguments], stderr=log)


def log_file(directory: str) -> Path:
    return Path(directory, "log")


def finished_files(directory: str) -> list[Path]:
    """Return the finished files. Names of unfinished files begin with a dot."""
    return list(Path(directory, "out").glob("part-*"))


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        job = start_child(directory)
        print("the job is running")
        while not finished_files(directory):
            if job.poll() is not None:
                raise SystemExit(f"the job has failed:\n{log_file(directory).read_text()}")
            time.sleep(0.05)
        job.kill()
        job.wait()
        print("it has written files: killed")

        job = start_child(directory, "resume")
        print("resumed from its last checkpoint")
        if job.wait() != 0:
            raise SystemExit(f"the resumed job has failed:\n{log_file(directory).read_text()}")

        lines = [
            line for file in finished_files(directory) for line in file.read_text().splitlines()
        ]
        expected = Counter(
            f"{sensor} {number}"
            for sensor in range(SENSORS)
            for number in range(1, READINGS // SENSORS + 1)
        )
        assert Counter(lines) == expected
        print(f"finished: {len(lines)} readings of {SENSORS} sensors, none lost, none twice")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run_job(sys.argv[1], resume="resume" in sys.argv[2:])
    else:
        main()
