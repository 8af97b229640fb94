"""Asynchronous requests to a slow and unreliable service, many orders at a time.

A coroutine simulates the service. Some requests fail, so the job retries them. For one article the
service never answers in time, so the order continues without a price.

Output:
    tea costs 3
    cake costs 4
    caviar costs ?
    milk costs 4
"""

import asyncio

from firesteel.common import Time
from firesteel.datastream import (
    AsyncDataStream,
    AsyncFunction,
    AsyncRetryStrategy,
    StreamExecutionEnvironment,
)


class PriceService:
    """Simulates an asyncio client for HTTP, a database or a cache."""

    def __init__(self):
        self.questions = 0

    async def price(self, article):
        self.questions += 1
        number = self.questions
        await asyncio.sleep(60 if article == "caviar" else 0.01)
        if number % 2 == 0:
            raise ConnectionError("the service is busy")
        return len(article)


class AddPrice(AsyncFunction):
    def open(self, runtime_context):
        self.service = PriceService()

    async def async_invoke(self, value):
        return [f"{value} costs {await self.service.price(value)}"]

    def timeout(self, value):
        return [f"{value} costs ?"]


def is_busy(error):
    return isinstance(error, ConnectionError)


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)

    orders = env.from_collection(["tea", "cake", "caviar", "milk"])
    retries = AsyncRetryStrategy.fixed_delay(
        max_attempts=5,
        backoff_time_millis=20,
        result_predicate=None,  # accept any result
        exception_predicate=is_busy,
    )
    priced = AsyncDataStream.ordered_wait_with_retry(
        orders, AddPrice(), Time.seconds(2), retries, capacity=10
    )
    priced.print()

    env.execute("async enrichment")


if __name__ == "__main__":
    main()
