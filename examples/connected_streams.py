"""Connected streams of different types in one function: prices and orders.

Both streams are keyed by product, so the price and the orders of a product reach the same subtask.
There is no order between the two streams, so an order without a price waits for it.

Output, in any order:
    2 x tea = 7.0
    1 x tea = 3.5
    3 x cake = 12.0
"""

from collections import defaultdict

from firesteel.common import Types
from firesteel.datastream import CoFlatMapFunction, StreamExecutionEnvironment


class Bill(CoFlatMapFunction):
    def open(self, runtime_context):
        self.prices = {}
        self.waiting = defaultdict(list)

    def flat_map1(self, value):
        product, price = value
        self.prices[product] = price
        for amount in self.waiting.pop(product, ()):
            yield bill(product, amount, price)

    def flat_map2(self, value):
        product, amount = value
        if product in self.prices:
            yield bill(product, amount, self.prices[product])
        else:
            self.waiting[product].append(amount)


def bill(product, amount, price):
    return f"{amount} x {product} = {amount * price}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)

    prices = env.from_collection([("tea", 3.5), ("cake", 4.0)])
    orders = env.from_collection([("tea", 2), ("cake", 3), ("tea", 1)])
    bills = (
        prices.connect(orders)
        .key_by(lambda price: price[0], lambda order: order[0])
        .flat_map(Bill(), Types.STRING())
    )
    with bills.execute_and_collect("connected streams") as results:
        for line in results:
            print(line)


if __name__ == "__main__":
    main()
