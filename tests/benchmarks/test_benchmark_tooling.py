"""The benchmark's own arithmetic: rates, ratios, checks and the exit code. No peer is started."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import benchmarks.__main__ as command
from benchmarks import history
from benchmarks.__main__ import exit_code
from benchmarks.cases import BY_NAME, CASES, Case, Outcome, expected, for_checking, result_count
from benchmarks.cases import results as plain_results
from benchmarks.measure import (
    check,
    check_results,
    parse_arguments,
    run_cases,
    steady_rates,
)
from benchmarks.peers.catalog import FIRESTEEL, PEERS, Peer
from benchmarks.runner import PeerResult, Progress, parsed, run_peers
from benchmarks.table import ratios_table

_CASE = BY_NAME["reduce_1k"]
_BY_NAME = {peer.name: peer for peer in PEERS}


def _machine(
    seconds_to_start: float, rate: float, slow_turns: set[int], log: list[int]
) -> Callable[[Case, int], float]:
    def run(case: Case, records: int) -> float:
        log.append(records)
        hiccup = 10.0 if len(log) in slow_turns else 0.0
        return seconds_to_start + records / rate + hiccup

    return run


def test_a_steady_rate_leaves_out_what_both_sizes_have_in_common_and_takes_the_median() -> None:
    first: list[int] = []
    second: list[int] = []
    found = steady_rates(
        _CASE,
        {"a": _machine(5.0, 1_000.0, {2}, first), "b": _machine(1.0, 500.0, {3}, second)},
        records=4_000,
        repeats=3,
        seconds=1_000.0,
    )
    assert first == second == [1_000, 4_000] * 3
    assert found["a"].rate == pytest.approx(1_000.0)
    assert found["b"].rate == pytest.approx(500.0)
    assert len(found["a"].turns) == 3


def test_no_turn_begins_that_would_take_too_long_and_a_rate_that_does_not_show_is_none() -> None:
    log: list[int] = []
    [measured] = steady_rates(
        _CASE, {"": _machine(20.0, 1e12, {1}, log)}, records=4_000, repeats=5, seconds=60.0
    ).values()
    assert (len(log), len(measured.turns)) == (2, 1)
    assert measured.rate is None


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("records", [10_000, 10_001, 41_000])
def test_the_number_of_results_is_known_without_running_the_case(case: Case, records: int) -> None:
    assert result_count(case, records) == sum(1 for _ in plain_results(case, records))


def test_a_timed_run_that_lost_a_record_raises() -> None:
    check_results(BY_NAME["map_filter"], 5_000, 10_000)
    with pytest.raises(ValueError, match=r"map_filter: expected 5,000 records.* 4,999"):
        check_results(BY_NAME["map_filter"], 4_999, 10_000)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_function_of_a_case_takes_part_in_its_checked_run(case: Case) -> None:
    checked = for_checking(case)
    called: set[str] = set()

    def spy(name: str, function: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object) -> object:
            called.add(name)
            return function(*arguments)

        return call

    functions: dict[str, Any] = {
        name: getattr(checked, name)
        for name in ("make", "keep", "key", "combine", "other", "then")
        if hasattr(checked, name)
    }
    spies: dict[str, Any] = {name: spy(name, one) for name, one in functions.items()}
    watched = replace(checked, **spies)
    for _ in plain_results(watched, 10_000):
        pass
    # Only the exchange asks for the key of a record that is just passed on.
    assert functions.keys() - {"key"} <= called


def test_wrong_values_do_not_pass_the_check_even_if_their_number_and_the_largest_are_right() -> (
    None
):
    case = BY_NAME["union"]
    right = expected(case, 10_000)
    check(case, right)
    with pytest.raises(ValueError, match="this peer returned"):
        check(case, replace(right, total=right.total + 1))
    rolling = expected(_CASE, 10_000)
    check(_CASE, Outcome(rolling.count, rolling.largest, total=0))


def _result(peer: Peer, rate: float | None, problem: str | None = None) -> PeerResult:
    cases = {} if rate is None else {_CASE.name: {"rate": rate}}
    return PeerResult(peer, cases=cases, problem=problem)


def test_a_ratio_below_its_goal_is_marked() -> None:
    own, limit, pyflink = FIRESTEEL, _BY_NAME["handwritten"], _BY_NAME["pyflink"]
    shown = ratios_table(
        [_CASE], [_result(own, 600.0), _result(limit, 1_000.0), _result(pyflink, 5.0)]
    )
    assert shown is not None
    head, _, row, goal = shown.splitlines()
    assert head.split() == ["Firesteel", "against", "hand-written", "PyFlink"]
    assert row.removeprefix(_CASE.title).split() == ["0.60x", "!", "120x"]
    assert goal.split() == ["goal", "0.7x", "100x", "*"]
    assert ratios_table([_CASE], [_result(limit, 1_000.0)]) is None


def test_only_a_reference_that_is_not_installed_may_be_missing() -> None:
    missing = PeerResult(_BY_NAME["pyflink"], problem="not installed", installed=False)
    died = _result(_BY_NAME["bytewax"], None, "ended with exit code 1: no message")
    assert exit_code([_result(FIRESTEEL, 1.0), missing]) == 0
    assert exit_code([_result(FIRESTEEL, 1.0), died]) == 1
    assert exit_code([_result(FIRESTEEL, None, "ended with exit code 1")]) == 1


def test_a_peer_that_dies_before_its_first_case_is_a_problem_that_the_history_keeps() -> None:
    results: list[PeerResult] = []
    dying = Peer("dying", "dying", "benchmarks.peers.no_such_module")
    absent = Peer("absent", "absent", "benchmarks.peers.firesteel", environment="no-such-one")
    run_peers({dying: [], absent: []}, [_CASE.name], Progress(), lambda *_: None, results)
    assert [result.installed for result in results] == [True, False]
    assert exit_code(results) == 1
    kept = history.entry(results, {}, {})["peers"]
    assert "No module named" in kept["dying"]["problem"]
    assert "not installed" in kept["absent"]["problem"]


def test_a_peers_chatter_is_not_taken_for_figures() -> None:
    assert parsed('{"case": "union"}\n') == {"case": "union"}
    assert parsed("{not json\n") is None
    assert parsed("17\n") is None


def test_what_was_measured_before_somebody_gave_up_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(*arguments: Any) -> None:
        results: list[PeerResult] = arguments[-1]
        results.append(_result(FIRESTEEL, 42.0))
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "run_peers", interrupted)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr(history, "HISTORY", tmp_path / "history.jsonl")
    monkeypatch.setattr("sys.argv", ["benchmarks", "--cases", _CASE.name, "--sections"])
    with pytest.raises(KeyboardInterrupt):
        command.main()
    [line] = history.HISTORY.read_text().splitlines()
    assert json.loads(line)["peers"]["firesteel"]["cases"] == {_CASE.name: {"rate": 42.0}}


@pytest.mark.parametrize("warm_up", [True, False])
def test_large_runs_that_warm_up_come_before_all_that_are_timed(
    capsys: pytest.CaptureFixture[str], warm_up: bool
) -> None:
    arguments = parse_arguments("", ["--cases", "reduce_1k", "sum_tuples", "--repeats", "1"])
    runs: list[tuple[str, int]] = []
    warm_ups = [("reduce_1k", 40), ("sum_tuples", 30)] if warm_up else []

    def run(case: Case, records: int) -> float:
        runs.append((case.name, records // 1_000_000))
        # A warm-up that is timed by mistake would change the rate.
        return 1000.0 if len(runs) <= len(warm_ups) else records / 1e6

    run_cases(arguments, run, expected, warm_up=warm_up)
    timed = [("reduce_1k", 10), ("reduce_1k", 40), ("sum_tuples", 7), ("sum_tuples", 30)]
    assert runs == warm_ups + timed
    for line in capsys.readouterr().out.splitlines():
        figures = parsed(line)
        assert figures is not None
        assert figures["rate"] == pytest.approx(1e6)


def test_a_case_that_fails_while_it_warms_up_does_not_hide_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = parse_arguments("", ["--cases", "reduce_1k", "sum_tuples", "--repeats", "1"])

    def run(case: Case, records: int) -> float:
        if case.name == "reduce_1k":
            raise RuntimeError("too hot")
        return records / 1e6

    run_cases(arguments, run, expected)
    failed, measured = map(parsed, capsys.readouterr().out.splitlines())
    assert failed == {"case": "reduce_1k", "failed": "RuntimeError: too hot"}
    assert measured is not None
    assert measured["rate"] == pytest.approx(1e6)
