"""Interval join: find orders that were paid within 15 minutes, and orders that were not.

A payment matches the order with its number if it is made up to 15 minutes after the order. A
payment is late if the watermark is past its time; the join sends it to a side output. A timer
reports orders without a payment after 15 minutes. Times are minutes since the shop opened.

Output, in any order:
    paid: order 1, 40 EUR, after 5 minutes
    paid: order 4, 15 EUR, after 15 minutes
    late: a payment of 25 EUR for order 3, of minute 12
    missing: order 2, 60 EUR
    missing: order 3, 25 EUR
"""

from typing import NamedTuple

from firesteel.common import Duration, Time, Types, WatermarkStrategy
from firesteel.datastream import (
    KeyedCoProcessFunction,
    OutputTag,
    ProcessJoinFunction,
    StreamExecutionEnvironment,
)
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.testing import Pause, ScriptedSource

MINUTE = 60_000
PATIENCE = Time.minutes(15)

LATE_PAYMENTS = OutputTag("late payments")


class Order(NamedTuple):
    number: int
    amount: int
    minute: int


class Payment(NamedTuple):
    order: int
    amount: int
    minute: int


ORDERS = [Order(1, 40, 0), Order(2, 60, 3), Order(3, 25, 10), Order(4, 15, 20)]
PAYMENTS = [
    Payment(1, 40, 5),
    Payment(4, 15, 35),
    Payment(5, 80, 50),
    # During the pause the watermark advances to minute 48.
    Pause(seconds=1),
    Payment(3, 25, 12),
]


class Paid(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield left.number, left.amount, right.minute - left.minute


class FindMissing(KeyedCoProcessFunction):
    """Reads orders and paid orders, and reports orders that stay unpaid."""

    def open(self, runtime_context):
        self.open_order = runtime_context.get_state(
            ValueStateDescriptor("open order", Types.PICKLED_BYTE_ARRAY())
        )
        self.paid = runtime_context.get_state(ValueStateDescriptor("paid", Types.BOOLEAN()))

    def process_element1(self, value, ctx):
        self.open_order.update(value)
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + PATIENCE.to_milliseconds())

    def process_element2(self, value, ctx):
        self.paid.update(True)

    def on_timer(self, timestamp, ctx):
        order = self.open_order.value()
        if not self.paid.value():
            yield f"missing: order {order.number}, {order.amount} EUR"
        self.open_order.clear()
        self.paid.clear()


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    in_event_time = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_minutes(2)
    ).with_timestamp_assigner(lambda record, _: record.minute * MINUTE)
    # These sources play a script. A real job would read from a broker.
    orders = env.from_source(ScriptedSource(ORDERS), in_event_time, "orders")
    payments = env.from_source(ScriptedSource(PAYMENTS), in_event_time, "payments")

    paid = (
        orders.key_by(lambda order: order.number)
        .interval_join(payments.key_by(lambda payment: payment.order))
        .between(Time.milliseconds(0), PATIENCE)
        .side_output_right_late_data(LATE_PAYMENTS)
        .process(Paid())
    )
    missing = (
        orders.connect(paid)
        .key_by(lambda order: order.number, lambda result: result[0])
        .process(FindMissing())
    )
    late = paid.get_side_output(LATE_PAYMENTS).map(
        lambda p: f"late: a payment of {p.amount} EUR for order {p.order}, of minute {p.minute}"
    )
    lines = paid.map(lambda r: f"paid: order {r[0]}, {r[1]} EUR, after {r[2]} minutes")
    with lines.union(late, missing).execute_and_collect("orders and payments") as results:
        for line in results:
            print(line)


if __name__ == "__main__":
    main()
