"""The timer service that operators build on."""

from __future__ import annotations

import time

from firesteel.state.hashmap.backend import HashMapKeyedStateBackend
from firesteel.task.time.clock import SubtaskClock
from firesteel.task.time.timers import InternalTimerService


def _service(fired: list[object]) -> InternalTimerService:
    return InternalTimerService(
        "test",
        HashMapKeyedStateBackend(),
        SubtaskClock(now_millis=lambda: 77),
        lambda key, namespace, at: fired.append(("event", key, namespace, at)),
        lambda key, namespace, at: fired.append(("processing", key, namespace, at)),
        lambda: fired.append("round"),
    )


def test_timers_are_told_apart_by_key_namespace_and_domain() -> None:
    fired: list[object] = []
    service = _service(fired)
    for namespace in ("window 1", "window 2"):
        service.register_event_time_timer("k", namespace, 5)
        service.register_event_time_timer("k", namespace, 5)
        service.register_processing_time_timer("k", namespace, 6)
    service.delete_event_time_timer("k", "window 2", 5)
    assert service.count() == (1, 2)
    assert service.next_processing_time() == 6
    service.advance_watermark(5)
    service.advance_watermark(6)
    service.advance_processing_time(6)
    assert fired == [
        ("event", "k", "window 1", 5),
        "round",
        ("processing", "k", "window 1", 6),
        ("processing", "k", "window 2", 6),
        "round",
    ]
    assert service.next_processing_time() is None
    assert (service.current_watermark() < 0, service.current_processing_time()) == (True, 77)


def test_keys_of_timers_at_the_same_time_need_no_order() -> None:
    fired: list[object] = []
    service = _service(fired)
    for key in (None, "a", 1, ("b", 2), b"c"):
        service.register_event_time_timer(key, None, 1)
    service.advance_watermark(1)
    assert [event[1] for event in fired[:-1]] == [None, "a", 1, ("b", 2), b"c"]  # type: ignore[index]


def test_timers_that_are_moved_again_and_again_leave_nothing_behind() -> None:
    service = _service([])
    for number in range(100_000):
        service.delete_event_time_timer("session", None, number - 1)
        service.register_event_time_timer("session", None, number)
    assert service.count() == (1, 0)
    assert len(service._event_time._heap) < 5_000


def test_a_million_pending_timers_are_no_burden() -> None:
    fired: list[object] = []
    service = _service(fired)
    started = time.perf_counter()
    for number in range(1_000_000):
        service.register_event_time_timer(number, None, (number * 7_919) % 1_000_003)
    assert service.count() == (1_000_000, 0)
    service.advance_watermark(999)
    assert 900 <= len(fired) <= 1_001
    # About 2 s on one slow core; a cost that grew with the number of timers would take hours.
    assert time.perf_counter() - started < 60


def test_a_timer_may_register_late_timers_and_timers_of_its_own_time() -> None:
    fired: list[tuple[object, int]] = []
    service: InternalTimerService

    def on_timer(key: object, _: object, at: int) -> None:
        fired.append((key, at))
        if key == "a" and at == 5:
            # A late timer comes next, one of the same time after those that were there first.
            service.register_event_time_timer("late", None, 3)
            service.register_event_time_timer("same", None, 5)
            service.register_event_time_timer("later", None, 6)
            service.delete_event_time_timer("c", None, 5)
        if key == "late":
            service.register_event_time_timer("earlier", None, 2)

    service = InternalTimerService(
        "test", HashMapKeyedStateBackend(), SubtaskClock(now_millis=lambda: 0), on_timer, on_timer
    )
    for key in "abcd":
        service.register_event_time_timer(key, None, 5)
    service.advance_watermark(6)
    assert fired == [
        ("a", 5),
        ("late", 3),
        ("earlier", 2),
        ("b", 5),
        ("d", 5),
        ("same", 5),
        ("later", 6),
    ]
    assert service.count() == (0, 0)


def test_the_next_time_is_that_of_a_timer_that_was_not_deleted() -> None:
    fired: list[object] = []
    service = _service(fired)
    for key in "abc":
        service.register_processing_time_timer(key, None, 5)
    service.register_processing_time_timer("a", None, 7)
    for key in "ab":
        service.delete_processing_time_timer(key, None, 5)
    assert service.next_processing_time() == 5
    service.delete_processing_time_timer("c", None, 5)
    assert service.next_processing_time() == 7
    service.register_processing_time_timer("c", None, 5)
    assert service.next_processing_time() == 5
    service.advance_processing_time(7)
    assert fired == [("processing", "c", None, 5), ("processing", "a", None, 7), "round"]


def test_timers_are_restored_in_the_order_of_their_times() -> None:
    fired: list[object] = []
    service = _service(fired)
    for time_of_timer in (9, 3, 9, 5):
        service.register_event_time_timer("k", time_of_timer, time_of_timer)
    service.restore()
    assert service.count() == (3, 0)
    service.advance_watermark(9)
    assert [event[3] for event in fired[:-1]] == [3, 5, 9]  # type: ignore[index]
