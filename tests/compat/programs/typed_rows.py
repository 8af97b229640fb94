"""Rows with named fields, through map, filter and an aggregation by name.

PyFlink prints rows itself, the Python way: no blanks, and True instead of true.

Output:
    +I[hammer,2,19.0,True]
    +I[nail,500,5.0,False]
    +I[hammer,3,28.5,True]
"""

from firesteel.common import Row, Types
from firesteel.datastream import StreamExecutionEnvironment

ORDER = Types.ROW_NAMED(["item", "amount", "price"], [Types.STRING(), Types.INT(), Types.DOUBLE()])
BILL = Types.ROW_NAMED(
    ["item", "amount", "total", "heavy"],
    [Types.STRING(), Types.INT(), Types.DOUBLE(), Types.BOOLEAN()],
)


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    orders = env.from_collection(
        [Row("hammer", 2, 9.5), Row("nail", 500, 0.01), Row("gift", 0, 1.0), Row("hammer", 1, 9.5)],
        type_info=ORDER,
    )
    bills = (
        orders.filter(lambda order: order.amount > 0)
        .key_by(lambda order: order["item"])
        .sum("amount")
        .map(
            lambda order: Row(
                item=order.item,
                amount=order.amount,
                total=order.amount * order.price,
                heavy=order.item == "hammer",
            ),
            output_type=BILL,
        )
    )
    bills.print()
    env.execute("typed rows")


if __name__ == "__main__":
    main()
