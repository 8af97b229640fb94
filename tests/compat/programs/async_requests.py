"""Asynchronous requests in order, with retries and a timeout.

Output:
    (a,1)
    (b,2)
    (late,0)
    (c,3)
"""

import asyncio

from firesteel.common import Time, Types
from firesteel.datastream import (
    AsyncDataStream,
    AsyncFunction,
    AsyncRetryStrategy,
    StreamExecutionEnvironment,
)


class Number(AsyncFunction):
    def open(self, runtime_context):
        self.asked = set()

    async def async_invoke(self, value):
        if value == "late":
            await asyncio.sleep(30)
        await asyncio.sleep(0.03 if value == "a" else 0.01)
        if value not in self.asked:
            self.asked.add(value)
            raise ConnectionError("ask again")
        return [(value, ord(value[0]) - ord("a") + 1)]

    def timeout(self, value):
        return [(value, 0)]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    letters = env.from_collection(["a", "b", "late", "c"], type_info=Types.STRING())
    numbered = AsyncDataStream.ordered_wait_with_retry(
        letters,
        Number(),
        Time.seconds(3),
        AsyncRetryStrategy.fixed_delay(2, 10, None, lambda error: True),
        2,
        Types.TUPLE([Types.STRING(), Types.INT()]),
    )
    numbered.print()
    env.execute("async requests")


if __name__ == "__main__":
    main()
