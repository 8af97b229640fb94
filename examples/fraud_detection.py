"""Keyed state and timers: detect a small payment followed soon by a large one in the same account.

A payment below one dollar sets a flag. A timer clears the flag after half a second. A payment above
500 dollars while the flag is set raises an alert. The large payment of account 2 arrives too late.

Output, in any order:
    account 1: 0.5 and then 800.0
    account 3: 0.1 and then 600.0
    account 2: forgotten
"""

from firesteel.common import Types, WatermarkStrategy
from firesteel.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.testing import Pause, ScriptedSource

SMALL, LARGE, PATIENCE_MILLIS = 1.0, 500.0, 500

PAYMENTS = [
    (1, 0.5),
    (1, 800.0),
    (2, 0.9),
    (3, 0.1),
    (3, 600.0),
    (4, 900.0),
    Pause(seconds=2),
    (2, 700.0),
]


class FraudDetector(KeyedProcessFunction):
    def open(self, runtime_context):
        self.small = runtime_context.get_state(ValueStateDescriptor("small", Types.DOUBLE()))
        self.timer = runtime_context.get_state(ValueStateDescriptor("timer", Types.LONG()))

    def process_element(self, value, ctx):
        account, amount = value
        small = self.small.value()
        if small is not None:
            if amount > LARGE:
                yield f"account {account}: {small} and then {amount}"
            ctx.timer_service().delete_processing_time_timer(self.timer.value())
            self.forget()
        if amount < SMALL:
            time = ctx.timer_service().current_processing_time() + PATIENCE_MILLIS
            ctx.timer_service().register_processing_time_timer(time)
            self.small.update(amount)
            self.timer.update(time)

    def on_timer(self, timestamp, ctx):
        self.forget()
        yield f"account {ctx.get_current_key()}: forgotten"

    def forget(self):
        self.small.clear()
        self.timer.clear()


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    # This source pauses at the marks of the script. A real job would read from a broker.
    payments = env.from_source(
        ScriptedSource(PAYMENTS), WatermarkStrategy.no_watermarks(), "payments"
    )
    alerts = payments.key_by(lambda payment: payment[0]).process(FraudDetector(), Types.STRING())
    with alerts.execute_and_collect("fraud detection") as lines:
        for line in lines:
            print(line)


if __name__ == "__main__":
    main()
