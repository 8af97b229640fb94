"""A program with every kind of operator, and the exact drawings of its graphs."""

import json
from textwrap import dedent

import pytest

from firesteel.common import Types
from firesteel.datastream import OutputTag, ProcessFunction, RuntimeExecutionMode
from firesteel.graph.rendering import (
    as_dot,
    as_mermaid,
    as_text,
    picture_of_job_graph,
    picture_of_levels,
    picture_of_stream_graph,
)

PAIR = Types.TUPLE([Types.STRING(), Types.INT()])


class Check(ProcessFunction):
    def process_element(self, value, ctx):
        yield value


@pytest.fixture(name="job")
def _job(env):
    words = env.from_collection([("a", 1)], PAIR)
    numbers = env.from_sequence(1, 100).map(lambda n: ("n", n), PAIR).uid("pairs")
    checked = words.union(numbers, numbers).process(Check(), PAIR).name("Check")
    late = checked.get_side_output(OutputTag("late", PAIR))
    late.print("late")
    counts = checked.key_by(lambda pair: pair[0]).sum(1)
    counts.filter(lambda pair: pair[1] > 0).disable_chaining().print()
    counts.rebalance().map(str).set_parallelism(1).slot_sharing_group("io").print()
    return env._compile("golden")


def test_stream_graph(job):
    assert as_text(picture_of_stream_graph(job.stream_graph)) == dedent(
        """\
        StreamGraph of 'golden'
          [1] Source: Collection Source
                parallelism 1/1, group default
            --REBALANCE--> [4]
          [2] Source: Sequence Source
                parallelism 2/128, group default
            --FORWARD--> [3]
          [3] Map
                parallelism 2/128, group default
                uid pairs
            --FORWARD--> [4]
            --FORWARD--> [4]
          [4] Check
                parallelism 2/128, group default
            --FORWARD side output 'late'--> [5]
            --HASH--> [6]
          [5] Sink: Print to Std. Out
                parallelism 2/128, group default
          [6] Reduce
                parallelism 2/128, group default
            --FORWARD--> [7]
            --REBALANCE--> [9]
          [7] Filter
                parallelism 2/128, group default
                chaining NEVER
            --FORWARD--> [8]
          [8] Sink: Print to Std. Out
                parallelism 2/128, group default
          [9] Map
                parallelism 1/128, group io
            --REBALANCE--> [10]
          [10] Sink: Print to Std. Out
                parallelism 2/128, group io
        """
    )


def test_job_graph(job):
    assert as_text(picture_of_job_graph(job.job_graph)) == dedent(
        """\
        JobGraph of 'golden'
          [1] Source: Collection Source
                parallelism 1/1, group default
            --REBALANCE--> [4]
          [2] Source: Sequence Source -> Map
                parallelism 2/128, group default
            --FORWARD--> [4]
            --FORWARD--> [4]
          [4] Check -> Sink: Print to Std. Out
                parallelism 2/128, group default
            --HASH--> [6]
          [6] Reduce
                parallelism 2/128, group default
            --FORWARD--> [7]
            --REBALANCE--> [9]
          [7] Filter
                parallelism 2/128, group default
            --FORWARD--> [8]
          [8] Sink: Print to Std. Out
                parallelism 2/128, group default
          [9] Map
                parallelism 1/128, group io
            --REBALANCE--> [10]
          [10] Sink: Print to Std. Out
                parallelism 2/128, group io
        """
    )


def test_execution_graph(job):
    assert as_text(picture_of_levels(job.levels)) == dedent(
        """\
        ExecutionGraph of 'golden'
        level 0 slot 0 of 2:
          [1.0] Source: Collection Source (1/1)
            --REBALANCE--> [4.0]
            --REBALANCE--> [4.1]
          [2.0] Source: Sequence Source -> Map (1/2)
            --FORWARD--> [4.0]
            --FORWARD--> [4.0]
        level 0 slot 1 of 2:
          [2.1] Source: Sequence Source -> Map (2/2)
            --FORWARD--> [4.1]
            --FORWARD--> [4.1]
        level 1 slot 0 of 2:
          [4.0] Check -> Sink: Print to Std. Out (1/2)
            --HASH--> [6.0]
            --HASH--> [6.1]
        level 1 slot 1 of 2:
          [4.1] Check -> Sink: Print to Std. Out (2/2)
            --HASH--> [6.0]
            --HASH--> [6.1]
        level 2 slot 0 of 2:
          [6.0] Reduce (1/2)
            --FORWARD (local)--> [7.0]
            --REBALANCE--> [9.0]
          [7.0] Filter (1/2)
            --FORWARD (local)--> [8.0]
          [8.0] Sink: Print to Std. Out (1/2)
        level 2 slot 1 of 2:
          [6.1] Reduce (2/2)
            --FORWARD (local)--> [7.1]
            --REBALANCE--> [9.0]
          [7.1] Filter (2/2)
            --FORWARD (local)--> [8.1]
          [8.1] Sink: Print to Std. Out (2/2)
        level 3 slot 2 of 3:
          [9.0] Map (1/1)
            --REBALANCE--> [10.0]
            --REBALANCE--> [10.1]
        level 4 slot 2 of 4:
          [10.0] Sink: Print to Std. Out (1/2)
        level 4 slot 3 of 4:
          [10.1] Sink: Print to Std. Out (2/2)
        """
    )


def test_mermaid(env):
    env.from_sequence(1, 2).map(lambda n: n).name('a "<b>"').print()
    levels = env._compile("small").levels
    assert as_mermaid(picture_of_levels(levels)) == dedent(
        """\
        %% ExecutionGraph of 'small'
        flowchart LR
            subgraph frame0["level 0 slot 0 of 2"]
                n1_0["Source: Sequence Source -#gt; a #quot;#lt;b#gt;#quot; -#gt; Sink: Print to Std. Out (1/2)"]
            end
            subgraph frame1["level 0 slot 1 of 2"]
                n1_1["Source: Sequence Source -#gt; a #quot;#lt;b#gt;#quot; -#gt; Sink: Print to Std. Out (2/2)"]
            end
        """
    )
    assert as_mermaid(picture_of_stream_graph(env._compile("small").stream_graph)) == dedent(
        """\
        %% StreamGraph of 'small'
        flowchart LR
            n1["Source: Sequence Source<br/>parallelism 2/128, group default"]
            n2["a #quot;#lt;b#gt;#quot;<br/>parallelism 2/128, group default"]
            n3["Sink: Print to Std. Out<br/>parallelism 2/128, group default"]
            n1 -->|"FORWARD"| n2
            n2 -->|"FORWARD"| n3
        """
    )


def test_dot(env):
    env.from_sequence(1, 2).key_by(lambda n: n).map(lambda n: n).name('a "b"')
    assert as_dot(picture_of_job_graph(env._compile("small").job_graph)) == dedent(
        r"""
        digraph "JobGraph of 'small'" {
          rankdir=LR;
          node [shape=box];
          "1" [label="Source: Sequence Source\nparallelism 2/128, group default"];
          "2" [label="a \"b\"\nparallelism 2/128, group default"];
          "1" -> "2" [label="HASH"];
        }
        """
    ).lstrip("\n")


def test_dot_has_a_cluster_per_slot(job):
    dot = as_dot(picture_of_levels(job.levels))
    assert dot.count("subgraph cluster_") == 9
    assert '"6.0" -> "7.0" [label="FORWARD", style=dashed];' in dot


def test_plan_json(env):
    words = env.from_collection(["a", "b"]).map(str.upper).name("upper").set_description("to caps")
    words.print().name("out")
    words.key_by(lambda word: word).reduce(lambda a, b: a + b)
    plan = env.get_execution_plan()
    assert json.loads(plan) == {
        "nodes": [
            {
                "id": 1,
                "type": "Source: Collection Source",
                "pact": "Data Source",
                "contents": "Source: Collection Source",
                "parallelism": 1,
            },
            {
                "id": 2,
                "type": "upper",
                "pact": "Operator",
                "contents": "to caps",
                "parallelism": 2,
                "predecessors": [{"id": 1, "ship_strategy": "REBALANCE", "side": "second"}],
            },
            {
                "id": 4,
                "type": "Reduce",
                "pact": "Operator",
                "contents": "Reduce",
                "parallelism": 2,
                "predecessors": [{"id": 2, "ship_strategy": "HASH", "side": "second"}],
            },
            {
                "id": 3,
                "type": "Sink: out",
                "pact": "Data Sink",
                "contents": "Sink: out",
                "parallelism": 2,
                "predecessors": [{"id": 2, "ship_strategy": "FORWARD", "side": "second"}],
            },
        ]
    }
    assert env.get_execution_plan() == plan, "asking for the plan changes nothing"


@pytest.mark.parametrize("graph", ["job", "execution"])
def test_explain_ends_with_the_task_slots_that_spark_needs(env, graph):
    env.set_parallelism(3)
    numbers = env.from_sequence(1, 100)
    numbers.print()
    one_level = env.explain(graph).splitlines()[-1]
    assert one_level == "task slots: 3 in real time, 3 (the largest level) in micro-batches"
    numbers.key_by(lambda n: n % 7).map(str).set_parallelism(2).rebalance().print()
    *_, note = env.explain(graph).splitlines()
    assert note == "task slots: 8 (3 + 2 + 3) in real time, 3 (the largest level) in micro-batches"
    assert f"%% {note}" in env.explain(graph, "mermaid")
    assert f"// {note}" in env.explain(graph, "dot")
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    assert env.explain(graph).splitlines()[-1] == "task slots: 3 (the largest level)"
