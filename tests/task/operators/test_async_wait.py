"""ordered_wait and unordered_wait. Requests end in an order that each test scripts: none sleeps."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.common import Configuration, Time, Types
from firesteel.datastream import AsyncDataStream, AsyncFunction, AsyncRetryStrategy
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.errors import InvalidProgramError, TypeMismatchError, UserFunctionError
from firesteel.protocol.messages import SubtaskHandle
from firesteel.testing import Fault, JobHarness, OperatorHarness
from tests.thoroughness import examples

# Long enough for any machine; a test that would need it to pass has failed.
PATIENT = Time.seconds(60)
ORDERED, UNORDERED = AsyncDataStream.ordered_wait, AsyncDataStream.unordered_wait
BOTH = pytest.mark.parametrize("wait", [ORDERED, UNORDERED], ids=["ordered", "unordered"])


class EndsInOrder(AsyncFunction[Any, Any]):
    """The requests end in ``order``, whatever the order they begin in."""

    def __init__(self, order: list[Any]) -> None:
        self.order = order

    def open(self, runtime_context: Any) -> None:
        self.ended = {value: asyncio.Event() for value in self.order}

    async def async_invoke(self, value: Any) -> list[Any]:
        position = self.order.index(value)
        if position > 0:
            await self.ended[self.order[position - 1]].wait()
        self.ended[value].set()
        return [value]


class Never(AsyncFunction[Any, Any]):
    """Requests that do not end."""

    def __init__(self) -> None:
        self.begun: list[Any] = []
        self.canceled: list[Any] = []

    async def async_invoke(self, value: Any) -> list[Any]:
        self.begun.append(value)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.canceled.append(value)
            raise
        return []


def harness_of(wait: Any, function: Any, timeout: Time = PATIENT, **more: Any) -> OperatorHarness:
    return OperatorHarness.of(lambda s: wait(s, function, timeout, **more).name("ask"))


def log_of(harness: OperatorHarness) -> list[Any]:
    """Records, and watermarks as ``("watermark", w)``, in the order in which they left."""
    log: list[Any] = []
    output = harness._operator.output
    output.emit = lambda batch: log.extend(batch.values)
    output.watermark = lambda watermark: log.append(("watermark", watermark))
    return log


def test_ordered_results_come_in_the_order_of_the_records():
    with harness_of(ORDERED, EndsInOrder([3, 1, 2])) as harness:
        harness.process_elements([1, 2, 3])
        harness.finish()
        assert harness.output == [1, 2, 3]


def test_unordered_results_come_as_they_are_ready():
    with harness_of(UNORDERED, EndsInOrder([3, 1, 2])) as harness:
        harness.process_elements([1, 2, 3])
        harness.finish()
        assert harness.output == [3, 1, 2]


def test_ordered_keeps_watermarks_between_their_records():
    with harness_of(ORDERED, EndsInOrder([4, 3, 2, 1])) as harness:
        log = log_of(harness)
        harness.process_elements([1, 2])
        harness.process_watermark(10)
        assert log == []
        harness.process_elements([3, 4])
        harness.process_watermark(20)
        harness.snapshot()
        assert log == [1, 2, ("watermark", 10), 3, 4, ("watermark", 20)]


def test_unordered_records_overtake_each_other_but_no_watermark():
    with harness_of(UNORDERED, EndsInOrder([4, 3, 2, 1])) as harness:
        log = log_of(harness)
        harness.process_elements([1, 2])
        harness.process_watermark(10)
        harness.process_elements([3, 4])
        harness.process_watermark(20)
        harness.snapshot()
        assert log == [2, 1, ("watermark", 10), 4, 3, ("watermark", 20)]


@BOTH
def test_a_watermark_passes_at_once_when_nothing_is_in_flight(wait):
    with harness_of(wait, EndsInOrder([1])) as harness:
        harness.process_watermark(5)
        assert harness.watermarks == [5]


@BOTH
def test_what_runs_downstream_sees_the_watermark_that_reached_it(wait):
    with harness_of(wait, EndsInOrder([1, 2])) as harness:
        clock, seen = harness._operator.context.clock, []
        harness._operator.output.emit = lambda batch: seen.append((batch.values, clock.watermark))
        harness.process_watermark(5)
        harness.process_element(1)
        harness.process_watermark(10)
        harness.process_element(2)
        harness.snapshot()
        assert seen == [([1], 5), ([2], 10)]


@settings(deadline=None, max_examples=examples(60))
@given(data=st.data())
def test_any_order_of_endings_and_any_batches_obey_the_rules(data):
    steps = data.draw(st.lists(st.integers(0, 3), max_size=8))  # batch sizes; 0 is a watermark
    ordered = data.draw(st.booleans())
    records = list(range(sum(steps)))
    order = data.draw(st.permutations(records))
    wait = ORDERED if ordered else UNORDERED
    with harness_of(wait, EndsInOrder(order)) as harness:
        log, left = log_of(harness), list(records)
        expected: list[list[Any]] = []
        for number, size in enumerate(steps):
            if size == 0:
                harness.process_watermark(number)
                expected.append([("watermark", number)])
                continue
            batch, left = left[:size], left[size:]
            harness.process_elements(batch)
            if ordered or not expected or expected[-1][0] == ("watermark", number - 1):
                expected.append(batch)
            else:
                expected[-1] = expected[-1] + batch
        harness.snapshot()
    if not ordered:
        expected = [
            sorted(part, key=order.index) if isinstance(part[0], int) else part for part in expected
        ]
    assert log == [element for part in expected for element in part]


@BOTH
def test_a_batch_does_not_wait_for_its_own_end(wait):
    with harness_of(wait, EndsInOrder([2, 1])) as harness:
        harness.process_element(1)
        harness.process_element(2)  # only now can the request for 1 end
        harness.finish()
        assert sorted(harness.output) == [1, 2]


@BOTH
def test_capacity_is_used_and_not_exceeded(wait):
    class Together(AsyncFunction):
        """Three requests wait for each other: with less capacity none would end."""

        def open(self, runtime_context):
            self.barrier = asyncio.Barrier(3)
            self.now = self.most = 0

        async def async_invoke(self, value):
            self.now += 1
            self.most = max(self.most, self.now)
            await self.barrier.wait()
            self.now -= 1
            return [value]

    function = Together()
    with harness_of(wait, function, capacity=3) as harness:
        harness.process_elements(range(9))
        harness.process_elements(range(9, 15))
        harness.finish()
        assert sorted(harness.output) == list(range(15))
        assert function.most == 3


@BOTH
def test_nothing_is_in_flight_after_the_end_of_an_epoch(wait):
    with harness_of(wait, EndsInOrder([2, 1])) as harness:
        harness.process_elements([1, 2])
        snapshot = harness.snapshot()
        assert sorted(harness.output) == [1, 2]
        assert snapshot.whole is None


@BOTH
def test_timestamps_stay_with_all_results_of_their_record(wait):
    class Twice(AsyncFunction):
        async def async_invoke(self, value):
            return [value] * value

    with harness_of(wait, Twice()) as harness:
        harness.process_elements([1, 0, 2], [10, 20, 30])
        harness.process_element(1)
        harness.finish()
        assert sorted(harness.output_with_timestamps, key=str) == [
            (1, 10),
            (1, None),
            (2, 30),
            (2, 30),
        ]


def test_results_become_the_declared_type_or_fail():
    class Text(AsyncFunction):
        async def async_invoke(self, value):
            return [value]

    with harness_of(ORDERED, Text(), output_type=Types.INT()) as harness:
        harness.process_element("x")
        with pytest.raises(TypeMismatchError) as caught:
            harness.snapshot()
    assert caught.value.operator == "ask"


def test_an_exception_fails_the_job_and_names_operator_function_and_record():
    class Divide(AsyncFunction):
        async def async_invoke(self, value):
            return [1 // value]

    with harness_of(UNORDERED, Divide()) as harness:
        harness.process_elements([2, 0, 3])
        with pytest.raises(UserFunctionError) as caught:
            harness.snapshot()
    error = caught.value
    assert error.operator == "ask"
    assert error.function.endswith("Divide.async_invoke")
    assert error.line == Divide.async_invoke.__code__.co_firstlineno
    assert error.record == "0"
    assert "ZeroDivisionError" in error.traceback_text
    assert "firesteel/task" not in error.traceback_text


@pytest.mark.parametrize("error", [asyncio.CancelledError, SystemExit])
def test_no_exception_of_the_users_code_leaves_the_operator_waiting(error):
    class Raises(AsyncFunction):
        async def async_invoke(self, value):
            raise error

    with harness_of(ORDERED, Raises()) as harness:
        harness.process_element(1)
        with pytest.raises(UserFunctionError, match=error.__name__):
            harness.snapshot()


@pytest.mark.parametrize(
    ("result", "expected"),
    [(None, "cannot be none"), (7, "should be of list type"), ("text", "should be of list type")],
)
@pytest.mark.parametrize("method", ["async_invoke", "timeout"])
def test_a_result_that_is_no_list_is_the_error_of_pyflink(result, expected, method):
    class Wrong(Never):
        async def async_invoke(self, value):
            return result if method == "async_invoke" else await super().async_invoke(value)

        def timeout(self, value):
            return result

    with harness_of(ORDERED, Wrong(), Time.milliseconds(10)) as harness:
        harness.process_element("r")
        with pytest.raises(UserFunctionError) as caught:
            harness.snapshot()
    assert (
        f"RuntimeError: The result of AsyncFunction {expected}, please check the methods "
        f"'async_invoke' and 'timeout' of class '{Wrong}'."
    ) in str(caught.value)
    assert f"but the result is {result!r}" in str(caught.value)
    assert caught.value.operator == "ask"
    assert caught.value.function.endswith(f"Wrong.{method}")
    assert caught.value.record == "'r'"


@pytest.mark.parametrize("result", [(1, 2), range(1, 3), {1: "a", 2: "b"}])
def test_any_iterable_is_a_list_of_results(result):
    class Many(AsyncFunction):
        async def async_invoke(self, value):
            return result

    with harness_of(ORDERED, Many()) as harness:
        harness.process_element("r")
        harness.snapshot()
        assert harness.output == [1, 2]


def test_a_timeout_without_handler_fails_the_job_and_names_function_and_record():
    function = Never()
    with harness_of(ORDERED, function, Time.milliseconds(10)) as harness:
        harness.process_element("r")
        with pytest.raises(UserFunctionError, match=r"no answer within 0\.01 s") as caught:
            harness.snapshot()
    assert caught.value.operator == "ask"
    assert caught.value.function == "Never.async_invoke"
    assert caught.value.record == "'r'"
    assert function.canceled == ["r"]


def test_a_timeout_handler_gives_the_results():
    class Patient(Never):
        def timeout(self, value):
            return [value, "too late"]

    function = Patient()
    with harness_of(UNORDERED, function, Time.milliseconds(10)) as harness:
        harness.process_element("r", timestamp=3)
        harness.snapshot()
        assert harness.output_with_timestamps == [("r", 3), ("too late", 3)]
    assert function.canceled == ["r"]


def test_a_failing_timeout_handler_is_named():
    class Fails(Never):
        def timeout(self, value):
            raise LookupError("no substitute")

    with harness_of(ORDERED, Fails(), Time.milliseconds(10)) as harness:
        harness.process_element("r")
        with pytest.raises(UserFunctionError, match="no substitute") as caught:
            harness.snapshot()
    assert caught.value.function.endswith("Fails.timeout")
    assert caught.value.record == "'r'"


class Flaky(AsyncFunction[int, int]):
    """Fails (or answers with nothing) until the attempt whose number the record says."""

    def __init__(self, *, raises: bool) -> None:
        self.raises = raises
        self.attempts: dict[int, int] = {}

    async def async_invoke(self, value: int) -> list[int]:
        attempt = self.attempts[value] = self.attempts.get(value, 0) + 1
        if attempt >= value:
            return [value]
        if self.raises:
            raise ConnectionError(f"attempt {attempt}")
        return []


@pytest.mark.parametrize("raises", [True, False], ids=["exception", "result"])
def test_requests_are_made_again_while_the_predicate_and_the_strategy_say_so(raises):
    strategy = AsyncRetryStrategy.fixed_delay(
        3, 1, None if raises else (lambda results: not results), lambda error: True
    )
    function = Flaky(raises=raises)
    with OperatorHarness.of(
        lambda s: AsyncDataStream.ordered_wait_with_retry(s, function, PATIENT, strategy)
    ) as harness:
        harness.process_elements([1, 4, 2])
        harness.snapshot()
        assert harness.output == [1, 4, 2]
        assert function.attempts == {1: 1, 4: 4, 2: 2}


def test_the_last_answer_counts_when_there_are_no_retries_left():
    strategy = AsyncRetryStrategy.exponential_backoff(2, 1, 4, 2.0, None, lambda error: True)
    function = Flaky(raises=True)
    with OperatorHarness.of(
        lambda s: AsyncDataStream.unordered_wait_with_retry(s, function, PATIENT, strategy)
    ) as harness:
        harness.process_element(9)
        with pytest.raises(UserFunctionError, match="attempt 3"):
            harness.snapshot()


def test_the_function_is_opened_and_closed_once_and_in_its_loop():
    class Life(Never):
        def open(self, runtime_context):
            self.events = [("open", threading.current_thread())]
            self.loop = asyncio.get_running_loop()
            self.subtask = runtime_context.get_task_name_with_subtasks()

        async def close(self):  # type: ignore[override]  # it may be a coroutine
            assert asyncio.get_running_loop() is self.loop
            self.events.append(("close", threading.current_thread()))

    function = Life()
    with harness_of(ORDERED, function) as harness:
        harness.process_watermark(1)
        assert function.subtask == "ask (1/1)"
    (opened, thread), (closed, same_thread) = function.events
    assert (opened, closed) == ("open", "close")
    assert thread is same_thread is not threading.current_thread()
    assert not thread.is_alive()


def test_close_cancels_what_is_left():
    function = Never()
    with harness_of(UNORDERED, function) as harness:
        harness.process_elements([1, 2])
    assert sorted(function.canceled) == sorted(function.begun)


def test_an_attempt_that_broke_off_leaves_no_requests_and_no_results():
    class FirstTimeNever(Never):
        async def async_invoke(self, value):
            if value in self.begun:
                return [value]
            return await super().async_invoke(value)

    function = FirstTimeNever()
    with harness_of(ORDERED, function) as harness:
        harness.process_elements([1, 2])
        harness._subtask.restore(SubtaskHandle(), harness._store)
        function.begun = [1, 2]  # also if cancellation came before the first step
        harness.process_elements([1, 2])
        harness.snapshot()
        assert harness.output == [1, 2]


@BOTH
def test_requests_in_flight_of_a_live_slot_are_part_of_its_snapshot(wait):
    with harness_of(wait, Never()) as harness:
        harness._operator.context.wake = lambda: None
        harness.process_elements([(1, 5), (2, 6)], timestamps=[5, 6])
        harness.process_watermark(10)
        harness.process_idleness(True)
        snapshot = harness.snapshot()
        assert harness.output == harness.watermarks == harness.idleness == []
    order = EndsInOrder([(2, 6), (1, 5), (3, 7)])
    with OperatorHarness.restored(lambda s: wait(s, order, PATIENT), snapshot) as harness:
        log = log_of(harness)
        harness.process_element((3, 7), 11)
        harness.finish()
        both = [(1, 5), (2, 6)] if wait is ORDERED else [(2, 6), (1, 5)]
        assert log[:4] == [*both, ("watermark", 10), (3, 7)]


def test_after_rescaling_a_subtask_makes_the_requests_of_several():
    snapshots = []
    for subtask in range(2):
        with OperatorHarness.of(
            lambda s: ORDERED(s, Never(), PATIENT), parallelism=2, subtask=subtask
        ) as harness:
            harness._operator.context.wake = lambda: None
            harness.process_element(subtask)
            snapshots.append(harness.snapshot())
    with OperatorHarness.restored(
        lambda s: ORDERED(s, EndsInOrder([0, 1]), PATIENT), snapshots, parallelism=1
    ) as harness:
        harness.finish()
        assert harness.output == [0, 1]


def test_every_answer_wakes_the_slot_that_has_looked_before():
    class Gate(AsyncFunction):
        def open(self, runtime_context):
            self.gates = [asyncio.Event(), asyncio.Event()]

        async def async_invoke(self, value):
            await self.gates[value].wait()
            return [value]

    gate = Gate()
    woken = threading.Semaphore(0)
    with harness_of(UNORDERED, gate) as harness:
        operator: Any = harness._operator
        operator.context.wake = woken.release
        harness.process_elements([0, 1])
        for value in range(2):
            operator._thread.loop.call_soon_threadsafe(gate.gates[value].set)
            assert woken.acquire(timeout=60)
            operator.tick()
            assert harness.output == list(range(value + 1))


class Late(AsyncFunction[Any, Any]):
    """Answers when a test allows it."""

    allowed = threading.Event()

    async def async_invoke(self, value: Any) -> list[Any]:
        await asyncio.to_thread(Late.allowed.wait)
        return [value * 10]


@BOTH
def test_a_live_slot_does_not_wait_for_answers_at_the_end_of_an_epoch(wait):
    def program(env):
        return wait(env.from_collection(range(40)), Late(), PATIENT, 100)

    configuration = Configuration()
    configuration.set_string("firesteel.execution", "real-time")
    harness = JobHarness(program, records_per_epoch=10, configuration=configuration)
    Late.allowed.clear()
    for _ in range(3):
        harness.run_epoch()
    assert harness.collected == []
    Late.allowed.set()
    harness.run()
    assert sorted(harness.collected) == [value * 10 for value in range(40)]


@BOTH
@pytest.mark.parametrize("execution", ["micro-batch", "real-time"])
@pytest.mark.parametrize("fault", Fault)
def test_results_are_there_once_whatever_happens_to_the_task(wait, fault, execution):
    class Answer(AsyncFunction):
        async def async_invoke(self, value):
            await asyncio.sleep(0)
            return [value * 10]

    def program(env):
        return wait(env.from_collection(range(40)), Answer(), PATIENT, 4)

    configuration = Configuration()
    configuration.set_string("firesteel.execution", execution)
    harness = JobHarness(program, parallelism=2, records_per_epoch=10, configuration=configuration)
    harness.run({epoch: dict.fromkeys(harness.places(), fault) for epoch in (1, 3)})
    assert sorted(harness.collected) == [value * 10 for value in range(40)]


def test_there_is_no_state_in_an_async_function():
    class Stateful(Never):
        def open(self, runtime_context):
            runtime_context.get_state(ValueStateDescriptor("s", Types.INT()))

    with pytest.raises(UserFunctionError, match="an AsyncFunction cannot use state"):
        harness_of(ORDERED, Stateful()).open()


def test_it_runs_on_a_keyed_stream():
    program = lambda s: ORDERED(s.key_by(lambda v: v % 2), EndsInOrder([1, 2]), PATIENT)  # noqa: E731
    with OperatorHarness.of(program) as harness:
        harness.process_elements([1, 2])
        harness.finish()
        assert harness.output == [1, 2]


class Good(AsyncFunction[Any, Any]):
    async def async_invoke(self, value: Any) -> list[Any]:
        return [value]


class Blocking(AsyncFunction[Any, Any]):
    def async_invoke(self, value: Any) -> Any:
        return [value]


class SlowTimeout(Good):
    async def timeout(self, value: Any) -> Any:  # type: ignore[override]  # refused
        return [value]


@pytest.mark.parametrize(
    ("function", "timeout", "more", "message"),
    [
        (Blocking(), PATIENT, {}, "async def"),
        (SlowTimeout(), PATIENT, {}, "regular method"),
        (lambda v: v, PATIENT, {}, "expects an AsyncFunction"),
        (Good(), 5, {}, r"Time\.seconds"),
        (Good(), PATIENT, {"capacity": 0}, "capacity"),
        (Good(), PATIENT, {"async_retry_strategy": None}, "AsyncRetryStrategy"),
        (
            Good(),
            Time.seconds(0),
            {"async_retry_strategy": AsyncRetryStrategy.fixed_delay(1, 1, None, None)},
            "retries need a timeout",
        ),
    ],
)
def test_mistakes_are_errors_when_the_program_is_built(function, timeout, more, message):
    wait = (
        AsyncDataStream.ordered_wait_with_retry
        if "async_retry_strategy" in more
        else AsyncDataStream.ordered_wait
    )
    with pytest.raises(InvalidProgramError, match=message):
        OperatorHarness.of(lambda s: wait(s, function, timeout, **more))
