import pytest

from firesteel.datastream.stream_execution_environment import program_process
from firesteel.errors import InvalidProgramError, JobExecutionError
from tests.waiting import wait_until


def test_execute_returns_the_result(env, launcher):
    env.from_sequence(1, 2).print()
    result = env.execute("mine")
    (job,) = launcher.jobs
    assert result.get_job_id() == job.job_id
    assert job.job.settings.job_name == job.job.stream_graph.job_name == "mine"
    assert job.job.levels.job_graph is job.job.job_graph


def test_default_job_name(env, launcher):
    env.from_sequence(1, 2).print()
    env.execute()
    env.from_sequence(1, 2).print()
    env.execute_async()
    assert [job.job.settings.job_name for job in launcher.jobs] == ["Flink Streaming Job"] * 2


def test_nothing_to_run(env, launcher):
    for prepare in (lambda: None, lambda: env.from_sequence(1, 2)):
        prepare()
        with pytest.raises(InvalidProgramError, match="No operators defined in streaming topology"):
            env.execute()
        with pytest.raises(InvalidProgramError, match="No operators defined"):
            env.get_execution_plan()
    assert launcher.jobs == []


def test_the_next_job_has_only_what_was_added_since(env, launcher):
    numbers = env.from_sequence(1, 2).map(abs)
    numbers.print()
    env.execute()
    numbers.filter(bool).name("second")
    env.execute()
    assert [job.names() for job in launcher.jobs] == [
        ["Source: Sequence Source", "Map", "Sink: Print to Std. Out"],
        ["Source: Sequence Source", "Map", "second"],
    ]
    with pytest.raises(InvalidProgramError, match="No operators"):
        env.execute()


def test_operators_without_a_sink_run_too(env, launcher):
    env.from_sequence(1, 2).map(abs)
    env.execute()
    assert launcher.jobs[0].names() == ["Source: Sequence Source", "Map"]


def test_a_mistake_can_be_corrected_and_run_again(env, launcher):
    mapped = env.from_sequence(1, 2).map(abs).uid("same")
    sink = mapped.print().uid("same")
    with pytest.raises(InvalidProgramError, match="same uid"):
        env.execute()
    sink.uid("other")
    env.execute()
    assert len(launcher.jobs) == 1


def test_a_failed_job_is_not_run_again_by_the_next_execute(env, launcher):
    launcher.run = lambda job: job.finish(JobExecutionError("boom"))
    launcher.end_at_once = False
    env.from_sequence(1, 2).print()
    with pytest.raises(JobExecutionError, match="boom"):
        env.execute()
    with pytest.raises(InvalidProgramError, match="No operators"):
        env.execute()


@pytest.mark.parametrize(("prompt", "raised"), [(True, KeyboardInterrupt), (False, SystemExit)])
def test_interrupt_cancels_the_job_and_ends_a_script_without_a_traceback(
    env, launcher, monkeypatch, prompt, raised
):
    launcher.end_at_once = False
    monkeypatch.setattr(program_process, "is_interactive", lambda: prompt)

    def interrupted(*_):
        raise KeyboardInterrupt

    launcher.run = lambda job: monkeypatch.setattr(job.result(), "result", interrupted)
    env.from_sequence(1, 2).print()
    with pytest.raises(raised):
        env.execute()
    assert launcher.jobs[0].cancelled


def test_close_forgets_what_has_not_run(env):
    env.from_sequence(1, 2).print()
    env.close()
    with pytest.raises(InvalidProgramError, match="No operators"):
        env.execute()


# -- execute_and_collect -------------------------------------------------------------------------


def test_collect(env, launcher):
    launcher.run = lambda job: (job.collector().add([1, 2]), job.collector().add([3]))
    with env.from_sequence(1, 3).execute_and_collect("collecting") as results:
        assert list(results) == [1, 2, 3]
    (job,) = launcher.jobs
    assert job.names() == ["Source: Sequence Source", "Sink: Data stream collect sink"]
    assert job.job.settings.job_name == "collecting"
    assert not job.cancelled


def test_collect_on_a_keyed_stream(env, launcher):
    launcher.run = lambda job: job.collector().add([1])
    assert list(env.from_sequence(1, 3).key_by(abs).execute_and_collect()) == [1]


def test_collect_streams_while_the_job_runs(env, launcher):
    launcher.end_at_once = False
    results = env.from_sequence(1, 3).execute_and_collect()
    (job,) = launcher.jobs
    job.collector().add(["early"])
    assert next(results) == "early"
    job.collector().add(["late"])
    assert results.next() == "late"
    job.finish()
    with pytest.raises(StopIteration):
        next(results)


def test_collect_with_a_limit_cancels_the_rest(env, launcher):
    launcher.end_at_once = False
    launcher.run = lambda job: job.collector().add([1, 2, 3])
    assert env.from_sequence(1, 3).execute_and_collect(limit=2) == [1, 2]
    assert launcher.jobs[0].cancelled


def test_a_limit_never_reached(env, launcher):
    launcher.run = lambda job: job.collector().add([1])
    assert env.from_sequence(1, 3).execute_and_collect(limit=5) == [1]
    with pytest.raises(InvalidProgramError, match="limit"):
        env.from_sequence(1, 3).execute_and_collect(limit=0)


def test_a_limit_does_not_wait_for_one_record_more(env, launcher):
    """An unbounded job may never send a record after the last one that is wanted."""
    launcher.end_at_once = False
    launcher.run = lambda job: job.collector().add([1, 2])
    assert env.from_sequence(1, 3).execute_and_collect(limit=2) == [1, 2]


def test_collect_raises_what_the_job_raised_after_its_records(env, launcher):
    launcher.end_at_once = False
    results = env.from_sequence(1, 3).execute_and_collect()
    launcher.jobs[0].collector().add([1])
    launcher.jobs[0].finish(JobExecutionError("boom"))
    assert next(results) == 1
    with pytest.raises(JobExecutionError, match="boom"):
        next(results)


def test_closing_twice_cancels_once(env, launcher):
    launcher.end_at_once = False
    results = env.from_sequence(1, 3).execute_and_collect()
    results.close()
    results.close()
    assert launcher.jobs[0].cancelled
    assert list(results) == []


def test_collect_takes_the_other_sinks_along_once(env, launcher):
    numbers = env.from_sequence(1, 3)
    numbers.print()
    list(numbers.execute_and_collect())
    list(numbers.execute_and_collect())
    assert [len(job.names()) for job in launcher.jobs] == [3, 2]


def test_collect_leaves_nothing_behind_when_the_graph_is_wrong(env, launcher):
    numbers = env.from_sequence(1, 3)
    mapped = numbers.map(abs).uid("same")
    other = numbers.map(abs).uid("same")
    with pytest.raises(InvalidProgramError, match="same uid"):
        mapped.execute_and_collect()
    other.uid("other")
    env.execute()
    assert "Sink: Data stream collect sink" not in launcher.jobs[0].names()


def test_the_waiting_thread_ends_with_the_job(env, launcher):
    import threading

    def waiting():
        return [t for t in threading.enumerate() if t.name == "firesteel-collect"]

    list(env.from_sequence(1, 3).execute_and_collect())
    wait_until(lambda: not waiting())
