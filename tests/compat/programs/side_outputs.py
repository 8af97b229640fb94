"""One process function, one main output and two side outputs.

Output, in any order:
    numbers> 1
    numbers> -2
    numbers> 30
    negative> (-2,line 1)
    rejected> x
    rejected> 4.5
"""

from firesteel.common import Types
from firesteel.datastream import OutputTag, ProcessFunction, StreamExecutionEnvironment

NEGATIVE = OutputTag("negative", Types.TUPLE([Types.LONG(), Types.STRING()]))
REJECTED = OutputTag("rejected", Types.STRING())


class Parse(ProcessFunction):
    def process_element(self, value, ctx):
        line, text = value
        try:
            number = int(text)
        except ValueError:
            yield REJECTED, text
            return
        if number < 0:
            yield NEGATIVE, (number, f"line {line}")
        yield number


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    texts = env.from_collection(list(enumerate(["1", "-2", "x", "30", "4.5"])))
    numbers = texts.process(Parse(), output_type=Types.LONG())
    numbers.print("numbers")
    numbers.get_side_output(NEGATIVE).print("negative")
    numbers.get_side_output(REJECTED).print("rejected")
    env.execute("side outputs")


if __name__ == "__main__":
    main()
