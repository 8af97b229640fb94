"""A custom source and two custom sinks in plain Python.

The source has splits, which the subtasks share. The position of a split records the progress of its
reader. The sink has a writer in every subtask, and a committer that makes its files visible. The
SinkFunction is simpler and gives no guarantee.

Output:
    files: ['squares-0-0.json', 'squares-1-0.json']
    squares: [0, 1, 4, 9, 16, 25, 36, 49, 64, 81]
    sink functions: 2
    they saw 10 records
"""

import json
import tempfile
from pathlib import Path

from firesteel.datastream import SinkFunction, StreamExecutionEnvironment
from firesteel.datastream.connectors.base import (
    Boundedness,
    Committer,
    Sink,
    SinkWriter,
    Source,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
)


class SquaresSource(Source):
    """Emits the squares of the numbers below `end`, with one split per subtask."""

    def __init__(self, end):
        self.end = end

    def get_boundedness(self):
        return Boundedness.BOUNDED

    def create_enumerator(self, parallelism, state=None):
        return SquaresEnumerator(self.end, parallelism, done=bool(state))

    def create_reader(self, context):
        return SquaresReader(self.end)


class SquaresEnumerator(SplitEnumerator):
    """Runs in the driver and creates the splits."""

    def __init__(self, end, parallelism, done):
        self.end, self.parallelism, self.done = end, parallelism, done

    def discover_splits(self):
        if self.done:
            return []
        self.done = True
        return [
            SourceSplit(f"every-{first}", {"step": self.parallelism}, position=first)
            for first in range(self.parallelism)
        ]

    def snapshot_state(self):
        return self.done


class SquaresReader(SourceReader):
    """Runs in a slot. It must read the same records again from the same positions."""

    def __init__(self, end):
        self.end, self.splits = end, []

    def add_splits(self, splits):
        self.splits += splits

    def read(self, limit):
        records: list[int] = []
        while self.splits and len(records) < limit:
            split = self.splits.pop()
            number = split.position
            while number < self.end and len(records) < limit:
                records.append(number * number)
                number += split.properties["step"]
            if number < self.end:
                self.splits.append(split.at(number))
        return records

    def snapshot_splits(self):
        return list(self.splits)


class JsonSink(Sink):
    """Writes one file per subtask at the end of the input. A commit makes it visible."""

    def __init__(self, directory):
        self.directory = directory

    def create_writer(self, context, state=None):
        return JsonWriter(f"squares-{context.subtask_index}", state or [])

    def create_committer(self):
        return JsonCommitter(self.directory)


class JsonWriter(SinkWriter):
    def __init__(self, name, values):
        self.name, self.values = name, list(values)

    def write(self, value, context):
        self.values.append(value)

    def prepare_commit(self, end_of_input):
        if not end_of_input or not self.values:
            return []
        values, self.values = self.values, []
        return [{"name": f"{self.name}-0.json", "values": values}]

    def snapshot_state(self):
        return list(self.values)


class JsonCommitter(Committer):
    """Makes files visible. A second call with the same committable writes the same file again."""

    def __init__(self, directory):
        self.directory = Path(directory)

    def commit(self, committables):
        for committable in committables:
            hidden = self.directory / f".{committable['name']}"
            hidden.write_text(json.dumps(committable["values"]))
            hidden.rename(self.directory / committable["name"])


class Tally(SinkFunction):
    """Counts records in `self`, and writes the count to a file when the job ends."""

    def __init__(self, directory):
        self.directory = directory

    def open(self, runtime_context):
        self.path = Path(self.directory) / f"tally-{runtime_context.get_index_of_this_subtask()}"
        self.count = 0

    def invoke(self, value, context):
        self.count += 1

    def close(self):
        self.path.write_text(str(self.count))


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    with tempfile.TemporaryDirectory() as directory:
        squares = env.from_source(SquaresSource(10), None, "Squares")
        squares.sink_to(JsonSink(directory))
        squares.add_sink(Tally(directory))
        env.execute("custom source and sink")

        files = sorted(Path(directory).glob("squares-*"))
        print("files:", [file.name for file in files])
        print("squares:", sorted(n for file in files for n in json.loads(file.read_text())))
        tallies = [int(file.read_text()) for file in Path(directory).glob("tally-*")]
        print("sink functions:", len(tallies))
        print("they saw", sum(tallies), "records")


if __name__ == "__main__":
    main()
