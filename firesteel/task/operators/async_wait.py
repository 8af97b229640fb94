"""ordered_wait and unordered_wait: many requests to external systems at the same time.

Requests run in an event loop in a thread of its own. The slot's thread starts them and emits their
results, so that all consumers run in one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from typing import Any, NoReturn

from firesteel.common.constants import MAX_WATERMARK
from firesteel.common.distributed_cache import DistributedCache
from firesteel.datastream.functions import AsyncFunctionDescriptor, RuntimeContext
from firesteel.errors import InvalidProgramError, JobExecutionError
from firesteel.graph.operator_specs import AsyncWaitSpec
from firesteel.metrics import MetricGroup
from firesteel.task.async_io.element_queues import OrderedElementQueue, UnorderedElementQueue
from firesteel.task.async_io.invoker import AsyncInvoker, AsyncRequest, EventLoopThread
from firesteel.task.capabilities import Rescalable, Ticking
from firesteel.task.operators.base import FunctionOperator, OperatorContext
from firesteel.task.record_batch import RecordBatch
from firesteel.usercode.failures import USER_ERRORS


class StatelessRuntimeContext(RuntimeContext):
    """A runtime context without state: requests of different keys run at the same time."""

    def __init__(self, context: RuntimeContext) -> None:
        self._context = context

    def get_task_name(self) -> str:
        return self._context.get_task_name()

    def get_number_of_parallel_subtasks(self) -> int:
        return self._context.get_number_of_parallel_subtasks()

    def get_max_number_of_parallel_subtasks(self) -> int:
        return self._context.get_max_number_of_parallel_subtasks()

    def get_index_of_this_subtask(self) -> int:
        return self._context.get_index_of_this_subtask()

    def get_attempt_number(self) -> int:
        return self._context.get_attempt_number()

    def get_task_name_with_subtasks(self) -> str:
        return self._context.get_task_name_with_subtasks()

    def get_job_parameter(self, key: str, default_value: str) -> str:
        return self._context.get_job_parameter(key, default_value)

    def get_distributed_cache(self) -> DistributedCache:
        return self._context.get_distributed_cache()

    def get_metrics_group(self) -> MetricGroup:
        return self._context.get_metrics_group()

    def get_state(self, state_descriptor: Any) -> NoReturn:
        _no_state()

    def get_list_state(self, state_descriptor: Any) -> NoReturn:
        _no_state()

    def get_map_state(self, state_descriptor: Any) -> NoReturn:
        _no_state()

    def get_reducing_state(self, state_descriptor: Any) -> NoReturn:
        _no_state()

    def get_aggregating_state(self, state_descriptor: Any) -> NoReturn:
        _no_state()


def _no_state() -> NoReturn:
    raise InvalidProgramError(
        "an AsyncFunction cannot use state, because its requests run concurrently. Keep state in "
        "a process function before or after it."
    )


# The interval at which a wait checks that the event loop is alive.
_ALIVE_SECONDS = 5.0


class _Answers(SimpleQueue[AsyncRequest]):
    """Requests that have an answer. The first of them wakes up the slot."""

    def __init__(self, wake: Callable[[], None]) -> None:
        super().__init__()
        self._wake = wake
        # The slot was woken up, and has not looked yet.
        self._is_awaited = False

    def put(self, item: AsyncRequest, block: bool = True, timeout: float | None = None) -> None:
        super().put(item, block, timeout)
        if not self._is_awaited:
            self._is_awaited = True
            self._wake()

    def look(self) -> None:
        """Called before the slot takes all answers. The next one wakes it up again."""
        self._is_awaited = False


@dataclass(frozen=True, slots=True)
class RequestsInFlight:
    """The requests that have no emitted answer yet. They are made again.

    elements: values with their timestamps, and the watermarks between them.
    watermark: the last emitted watermark.
    idle: the input is idle or active, which consumers do not know yet. None if they do.
    """

    elements: tuple[tuple[Any, int | None] | int, ...]
    watermark: int
    idle: bool | None = None


class AsyncWaitOperator(FunctionOperator, Ticking, Rescalable):
    """Makes requests across batches and epochs.

    Results leave as soon as they are there: an answer wakes up the slot, which calls ``tick``. The
    records whose requests are in flight at a barrier are part of the snapshot.

    A slot that works epoch by epoch waits for all requests at the end of an epoch, because its
    process has no work between two epochs.
    """

    def __init__(self, spec: AsyncWaitSpec, context: OperatorContext) -> None:
        self._descriptor: AsyncFunctionDescriptor = spec.descriptor
        super().__init__(context, self._descriptor.async_function)
        self._capacity = self._descriptor.capacity
        self._thread: EventLoopThread | None = None
        # The last emitted watermark. The subtask's clock may be ahead of it.
        self._watermark = context.clock.watermark
        self._begin()

    def _begin(self) -> None:
        ordered = self._descriptor.output_mode is AsyncFunctionDescriptor.OutputMode.ORDERED
        self._queue: OrderedElementQueue | UnorderedElementQueue = (
            OrderedElementQueue() if ordered else UnorderedElementQueue()
        )
        self._completed = _Answers(self._wake_slot)
        self._invoker = AsyncInvoker(self._descriptor, self._completed)
        # Requests of a snapshot, to be made when the slot works.
        self._restored: RequestsInFlight | None = None
        # The input has become idle or active, after the requests in flight.
        self._idle: bool | None = None

    def open(self) -> None:
        """Open the function in the loop's thread, so that clients created there find the loop."""
        thread = self._thread = EventLoopThread(f"async {self.name}")
        context = StatelessRuntimeContext(self.context.runtime_context())
        try:
            thread.call(self.function.open, context)
        except USER_ERRORS as error:
            raise self.failure(error, self.function.open) from error

    def restore(self, whole: Any) -> None:
        """Forget the requests of an abandoned attempt. Their records come again."""
        abandoned = self._invoker
        self._begin()
        self._watermark = self.context.clock.watermark
        if isinstance(whole, RequestsInFlight):
            self._restored = whole
            self._watermark = min(self._watermark, whole.watermark)
        if self._thread is not None:
            self._thread.call(abandoned.cancel)

    def restore_several(self, wholes: Sequence[Any]) -> None:
        """Take over the requests of removed subtasks. Their watermarks are those of other inputs."""
        several = [whole for whole in wholes if isinstance(whole, RequestsInFlight)]
        elements = [one for whole in several for one in whole.elements if not isinstance(one, int)]
        watermark = min((whole.watermark for whole in several), default=MAX_WATERMARK)
        self.restore(RequestsInFlight(tuple(elements), watermark))

    def snapshot(self) -> RequestsInFlight | None:
        if self._restored is not None:
            return self._restored
        elements = tuple(
            (one.value, one.timestamp) if isinstance(one, AsyncRequest) else one
            for one in self._queue.elements()
        )
        if not elements and self._idle is None:
            return None
        return RequestsInFlight(elements, self._watermark, self._idle)

    def emitted_watermark(self, watermark: int) -> int:
        return min(watermark, self._watermark)

    def resume_time(self, watermark: int) -> None:
        self._watermark = watermark
        if self._restored is not None:
            self._restored = replace(self._restored, watermark=watermark)

    def _resume(self) -> None:
        """Make the requests of the restored snapshot."""
        restored, self._restored = self._restored, None
        if restored is None:
            return
        for element in restored.elements:
            if isinstance(element, int):
                self._queue.add_watermark(element)
                continue
            value, timestamp = element
            self._make_requests(RecordBatch([value], None if timestamp is None else [timestamp]))
        if restored.idle is not None:
            self.process_idle(restored.idle)

    def close(self) -> None:
        thread, self._thread = self._thread, None
        if thread is None:
            return
        try:
            thread.call(self._invoker.cancel)
            thread.call(self.function.close)
        except USER_ERRORS as error:
            raise self.failure(error, self.function.close) from error
        finally:
            thread.stop()

    @property
    def _is_live(self) -> bool:
        """The slot works as long as the job, and answers wake it up."""
        return self.context.wake is not None

    def process(self, batch: RecordBatch) -> None:
        if self._restored is not None:
            self._resume()
        self._make_requests(batch)

    def _make_requests(self, batch: RecordBatch) -> None:
        queue = self._queue
        start = 0
        while start < len(batch):
            self._take_completed()
            if queue.size == self._capacity:
                self._wait_for_completed()
                continue
            stop = start + self._capacity - queue.size
            self._start(batch.part(start, stop))
            start = stop

    def process_idle(self, idle: bool) -> None:
        """Tell consumers after the requests in flight, as with a watermark."""
        if self._restored is not None:
            self._resume()
        if not self._is_live:
            self._drain()
        self._idle = idle
        self._take_completed()

    def process_watermark(self, watermark: int) -> None:
        if self._restored is not None:
            self._resume()
        self._queue.add_watermark(watermark)
        self._take_completed()

    def _wake_slot(self) -> None:
        if self.context.wake is not None:
            self.context.wake()

    def tick(self) -> None:
        # A slot that works epoch by epoch emits the results with the next batch, or at the end.
        if not self._is_live:
            return
        if self._restored is not None:
            self._resume()
        if not self._completed.empty():
            self._take_completed()

    def next_tick(self) -> int | None:
        """Return None: answers wake up the slot."""
        return None

    def finish(self) -> None:
        self._drain()

    def end_epoch(self, *, finished: bool) -> None:
        if finished or not self._is_live:
            self._drain()

    def _drain(self) -> None:
        if self._restored is not None:
            self._resume()
        while self._queue.size:
            self._wait_for_completed()

    def _start(self, batch: RecordBatch) -> None:
        assert self._thread is not None
        if batch.timestamps is None:
            requests = [AsyncRequest(value, None) for value in batch.values]
        else:
            requests = list(map(AsyncRequest, batch.values, batch.timestamps))
        for request in requests:
            self._queue.add(request)
        self._thread.loop.call_soon_threadsafe(self._invoker.start, requests)

    def _wait_for_completed(self) -> None:
        assert self._thread is not None
        while True:
            try:
                self._complete(self._completed.get(timeout=_ALIVE_SECONDS))
                break
            except Empty:
                if not self._thread.is_alive:
                    raise JobExecutionError(
                        f"operator '{self.name}': the event loop of its requests has ended"
                    ) from None
        self._take_completed()

    def _take_completed(self) -> None:
        completed = self._completed
        completed.look()
        while not completed.empty():
            self._complete(completed.get())
        self._emit()

    def _complete(self, request: AsyncRequest) -> None:
        if request.error is not None:
            assert request.failed_in is not None
            raise self.failure(request.error, request.failed_in, [request.value]) from request.error
        self._queue.complete(request)

    def _emit(self) -> None:
        """Emit the results that may leave, in one batch as far as possible."""
        values: list[Any] = []
        timestamps: list[int] = []
        clock = self.context.clock
        newest = clock.watermark
        # Operators after this one must see the watermark that has reached them.
        clock.watermark = self._watermark
        try:
            for element in self._queue.take():
                if not isinstance(element, AsyncRequest):
                    self._emit_batch(values, timestamps)
                    values, timestamps = [], []
                    self._watermark = clock.watermark = element
                    self.output.watermark(element)
                    continue
                if values and (element.timestamp is None) is bool(timestamps):
                    # Some streams of a union have timestamps and some have none.
                    self._emit_batch(values, timestamps)
                    values, timestamps = [], []
                values += element.results
                if element.timestamp is not None:
                    timestamps += [element.timestamp] * len(element.results)
            self._emit_batch(values, timestamps)
        finally:
            clock.watermark = newest
        if self._idle is not None and not self._queue.size:
            idle, self._idle = self._idle, None
            self.output.idle(idle)

    def _emit_batch(self, values: list[Any], timestamps: list[int]) -> None:
        if values:
            self.output.emit(RecordBatch(values, timestamps or None))
