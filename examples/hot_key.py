"""A hot key: 95 of 100 orders are for tea, so one subtask does nearly all the work. Salted keys share it.

Both ways count the orders per product and second of event time, and give the same counts. Run each
of them in a session, and compare the page "Data skew" and the busy time in the dashboard:

    firesteel run -m localhost:8081 -d -p 4 examples/hot_key.py --orders 100000000
    firesteel run -m localhost:8081 -d -p 4 examples/hot_key.py --orders 100000000 --salted

Output, in any order:
    second 0: 475 of tea
    second 0: 13 of cake
    second 0: 12 of milk
"""

import argparse
import time

from firesteel.common import Time, WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.datastream.functions import ProcessWindowFunction
from firesteel.datastream.window import TumblingEventTimeWindows

SALTS = 64
ORDERS_PER_SECOND = 500


def order(number):
    """Return (product, number, count). A record may stand for several orders."""
    product = "tea" if number % 20 else ("cake", "milk")[number // 20 % 2]
    return product, number, 1


def add(one, other):
    # This stands for work that each order needs.
    time.sleep(0.001)
    return one[0], one[1], one[2] + other[2]


class WithSecond(ProcessWindowFunction):
    def process(self, key, context, elements):
        for product, _, count in elements:
            yield f"second {context.window().start // 1000}: {count} of {product}"


def per_second(stream, key):
    return stream.key_by(key).window(TumblingEventTimeWindows.of(Time.seconds(1)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--orders", type=int, default=ORDERS_PER_SECOND)
    parser.add_argument("--salted", action="store_true")
    given = parser.parse_args()

    env = StreamExecutionEnvironment.get_execution_environment()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda order, _: order[1] * 1000 // ORDERS_PER_SECOND
    )
    orders = env.from_source(DataGeneratorSource(order, given.orders), strategy, "orders")
    if given.salted:
        # Step 1: 64 keys per product spread the work. Step 2 adds up their 64 counts.
        salted = per_second(orders, lambda order: (order[0], order[1] % SALTS))
        orders = salted.reduce(add).name("salted counts")
    counts = per_second(orders, lambda order: order[0])
    counts.reduce(add, WithSecond()).name("counts").print().set_parallelism(1)
    env.execute("salted keys" if given.salted else "hot key")


if __name__ == "__main__":
    main()
