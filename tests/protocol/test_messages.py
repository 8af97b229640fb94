"""The confirmed runs that a slot hears about."""

import pickle

from firesteel.protocol.messages import ConfirmedRuns, new_run_id

_SLOTS = (2, 3, 2)
_RUNS = {(level, slot): new_run_id() for level, count in enumerate(_SLOTS) for slot in range(count)}


def test_every_slot_learns_its_own_run_from_whichever_slot_is_before_it():
    driver = ConfirmedRuns.of(_RUNS, _SLOTS)
    for first in range(_SLOTS[0]):
        at_0 = driver.told_to(0, first)
        assert at_0.own == _RUNS[0, first]
        for second in range(_SLOTS[1]):
            at_1 = at_0.told_to(1, second)
            assert at_1.own == _RUNS[1, second]
            assert [at_1.told_to(2, third).own for third in range(_SLOTS[2])] == [
                _RUNS[2, third] for third in range(_SLOTS[2])
            ]


def test_only_the_confirmed_run_counts_and_before_the_first_epoch_any():
    told = ConfirmedRuns.of(_RUNS, _SLOTS).told_to(1, 2)
    assert told.includes(_RUNS[1, 2])
    assert not told.includes(_RUNS[1, 2] ^ 1)
    assert ConfirmedRuns().told_to(1, 2).includes(_RUNS[1, 2])


def test_what_goes_to_the_last_level_does_not_grow_with_the_parallelism():
    wide = (400, 400)
    runs = {(level, slot): new_run_id() for level in range(2) for slot in range(400)}
    told = ConfirmedRuns.of(runs, wide).told_to(0, 7).told_to(1, 399)
    assert len(pickle.dumps(told)) < 200
