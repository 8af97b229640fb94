"""Side outputs: separate thermometer readings into readings, alarms and unreadable lines.

Output, in any order:
    readings> kitchen 21.5
    readings> oven 190.0
    readings> hall 19.0
    alarms> oven is at 190.0
    unreadable> cellar:warm
"""

from firesteel.common import Types
from firesteel.datastream import OutputTag, ProcessFunction, StreamExecutionEnvironment

ALARM = OutputTag("alarm", Types.STRING())
UNREADABLE = OutputTag("unreadable", Types.STRING())


class Read(ProcessFunction):
    def process_element(self, value, ctx):
        room, _, text = value.partition(":")
        try:
            degrees = float(text)
        except ValueError:
            yield UNREADABLE, value
            return
        if degrees > 60:
            yield ALARM, f"{room} is at {degrees}"
        yield f"{room} {degrees}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)

    lines = env.from_collection(["kitchen:21.5", "oven:190", "cellar:warm", "hall:19"])
    readings = lines.process(Read(), Types.STRING())
    readings.print("readings")
    readings.get_side_output(ALARM).print("alarms")
    readings.get_side_output(UNREADABLE).print("unreadable")

    env.execute("side outputs")


if __name__ == "__main__":
    main()
