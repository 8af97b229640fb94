"""Every kind of keyed state, and an event-time timer that fires at the end of the bounded input.

Output, in any order:
    a 1: last=[3] by parity={1: 1} largest=3 mean=3.0
    b 1: last=[8] by parity={0: 1} largest=8 mean=8.0
    a 2: last=[3, 4] by parity={0: 1, 1: 1} largest=4 mean=3.5
    a 3: last=[4, 1] by parity={0: 1, 1: 2} largest=4 mean=2.6666666666666665
    a is done after 3
    b is done after 1
"""

from firesteel.common import Time, Types
from firesteel.datastream import (
    AggregateFunction,
    KeyedProcessFunction,
    ReduceFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from firesteel.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)


class Largest(ReduceFunction):
    def reduce(self, value1, value2):
        return max(value1, value2)


class Mean(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Describe(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        count = ValueStateDescriptor("count", Types.LONG())
        ttl = (
            StateTtlConfig.new_builder(Time.hours(1))
            .set_update_type(StateTtlConfig.UpdateType.OnReadAndWrite)
            .set_state_visibility(StateTtlConfig.StateVisibility.NeverReturnExpired)
            .build()
        )
        count.enable_time_to_live(ttl)
        self.count = runtime_context.get_state(count)
        self.last = runtime_context.get_list_state(ListStateDescriptor("last", Types.LONG()))
        self.parity = runtime_context.get_map_state(
            MapStateDescriptor("parity", Types.LONG(), Types.LONG())
        )
        self.largest = runtime_context.get_reducing_state(
            ReducingStateDescriptor("largest", Largest(), Types.LONG())
        )
        self.mean = runtime_context.get_aggregating_state(
            AggregatingStateDescriptor("mean", Mean(), Types.TUPLE([Types.LONG(), Types.LONG()]))
        )

    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        number = value[1]
        self.count.update((self.count.value() or 0) + 1)
        self.last.update([*self.last.get(), number][-2:])
        seen = self.parity.get(number % 2) if self.parity.contains(number % 2) else None
        self.parity.put(number % 2, (seen or 0) + 1)
        self.largest.add(number)
        self.mean.add(number)
        ctx.timer_service().register_event_time_timer(1_000)
        yield (
            f"{ctx.get_current_key()} {self.count.value()}: last={list(self.last.get())} "
            f"by parity={dict(sorted(self.parity.items()))} largest={self.largest.get()} "
            f"mean={self.mean.get()}"
        )

    def on_timer(self, timestamp: int, ctx: "KeyedProcessFunction.OnTimerContext"):
        yield f"{ctx.get_current_key()} is done after {self.count.value()}"
        for state in (self.count, self.last, self.parity, self.largest, self.mean):
            state.clear()


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    numbers = env.from_collection(
        [("a", 3), ("b", 8), ("a", 4), ("a", 1)],
        type_info=Types.TUPLE([Types.STRING(), Types.LONG()]),
    )
    described = numbers.key_by(lambda v: v[0], key_type=Types.STRING()).process(
        Describe(), output_type=Types.STRING()
    )
    for line in described.execute_and_collect("keyed state"):
        print(line)


if __name__ == "__main__":
    main()
