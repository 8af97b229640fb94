"""Replies of the REST API with Flink's field names, for sessions of any size that no job runs in."""

from __future__ import annotations

import hashlib
import math
import time
from dataclasses import dataclass, field
from typing import Any

STATES = [
    "CREATED",
    "SCHEDULED",
    "DEPLOYING",
    "INITIALIZING",
    "RUNNING",
    "FINISHED",
    "CANCELING",
    "CANCELED",
    "FAILED",
    "RECONCILING",
]


def identifier(*parts: object) -> str:
    """An id of 32 hex digits, always the same for the same parts."""
    return hashlib.md5(repr(parts).encode(), usedforsecurity=False).hexdigest()


def now() -> int:
    return int(time.time() * 1_000)


def wave(seed: int, low: float = 0.0, high: float = 1.0) -> float:
    """A value between two bounds that changes slowly with time."""
    phase = time.time() / (5 + seed % 7) + seed
    return low + (high - low) * (0.5 + 0.35 * math.sin(phase) + 0.15 * math.sin(2.3 * phase))


@dataclass(slots=True)
class Vertex:
    name: str
    inputs: list[tuple[int, str]] = field(default_factory=list)
    parallelism: int = 4
    busy: float = 0.3
    pressed: float = 0.0
    # Records per second of all subtasks.
    rate: float = 2_000.0
    # The share of the first subtask in the records; the others have equal parts of the rest.
    first_share: float | None = None
    accumulators: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Job:
    name: str
    state: str
    vertices: list[Vertex]
    age: float = 754.0
    duration: float | None = None
    # Requests for flame graphs that come before the first samples.
    requests_before_samples: int = 0
    failures: list[tuple[float, str, str]] = field(default_factory=list)
    checkpoints: int = 10
    # The number of a slow checkpoint, counted from the newest, or None.
    slow: int | None = None
    parameters: dict[str, str] = field(default_factory=dict)
    jid: str = ""

    def __post_init__(self) -> None:
        self.jid = self.jid or identifier("job", self.name, self.age)

    @property
    def ended(self) -> bool:
        return self.state in {"FINISHED", "CANCELED", "FAILED"}

    def vertex_id(self, index: int) -> str:
        return identifier(self.jid, index)

    def index_of(self, vertex: str) -> int:
        return next(i for i in range(len(self.vertices)) if self.vertex_id(i) == vertex)


def pipeline() -> list[Vertex]:
    """A job whose third vertex is the bottleneck, and whose fifth is skewed."""
    return [
        Vertex("Source: Orders", [], 4, 0.08, 0.84, 4_200),
        Vertex("Parse -> Check", [(0, "FORWARD")], 4, 0.15, 0.78, 4_180),
        Vertex(
            "Enrich with customer",
            [(1, "REBALANCE")],
            4,
            0.97,
            0.0,
            4_150,
            accumulators={"cache-hits": 1_250_331, "cache-misses": 10_244},
        ),
        Vertex("Count in windows", [(2, "HASH")], 4, 0.31, 0.0, 4_150),
        Vertex("Totals by customer", [(2, "HASH")], 4, 0.28, 0.0, 4_150, first_share=0.72),
        Vertex("Sink: Kafka", [(3, "FORWARD"), (4, "FORWARD")], 4, 0.12, 0.0, 610),
        Vertex("Sink: Late orders", [(3, "REBALANCE")], 1, 0.01, 0.0, 3),
    ]


def wide_graph(levels: int = 10, width: int = 6, parallelism: int = 8) -> list[Vertex]:
    """Vertices in levels; each reads from two of the level before."""
    vertices: list[Vertex] = []
    for level in range(levels):
        for place in range(width):
            number = level * width + place
            start = (level - 1) * width
            inputs = (
                []
                if level == 0
                else [(start + place, "HASH"), (start + (place + level) % width, "REBALANCE")]
            )
            slow = number == levels * width // 2
            vertices.append(
                Vertex(
                    f"Source: Topic {place}"
                    if level == 0
                    else f"Step {level}.{place}: map, filter",
                    [source for i, source in enumerate(inputs) if source not in inputs[:i]],
                    parallelism,
                    0.98 if slow else 0.1 + 0.5 * (number * 37 % 100) / 100,
                    0.0,
                    1_000.0 * (1 + number % 9),
                )
            )
    slow_vertex = vertices[levels * width // 2]
    for source, _ in slow_vertex.inputs:
        vertices[source].pressed = 0.9
        vertices[source].busy = 0.1
    return vertices


TRACEBACK = """\
Traceback (most recent call last):
  File "/home/ada/shop/orders.py", line 48, in enrich
    return order.customer, price(order)
  File "/home/ada/shop/prices.py", line 12, in price
    return order.amount * RATES[order.currency]
           ~~~~~~~~~~~~~^~~~~~~~~~~~~~~~~~~~~~~
KeyError: 'XBT'

Job 'orders' failed: operator 'Enrich with customer' called enrich (/home/ada/shop/orders.py:45) on \
the record Order(customer='c-1881', amount=3, currency='XBT'), which raised the error above."""

LOST = """\
firesteel.errors.JobExecutionError: The process of slot 2 ended (signal 9). Spark starts its task again.
  File "/usr/lib/python3.11/site-packages/firesteel/slothost/client.py", line 210, in receive
    raise SlotLostError(slot)"""


@dataclass(slots=True)
class Session:
    """The state of a session. ``changes`` collects the calls that would change it."""

    jobs: list[Job]
    task_managers: int = 2
    slots: int = 8
    token: str | None = None
    history_server: bool = False
    refresh_interval: int = 1_000
    changes: list[tuple[str, str, Any]] = field(default_factory=list)
    polls: dict[str, int] = field(default_factory=dict)
    programs: list[dict[str, Any]] = field(default_factory=list)

    def find(self, jid: str) -> Job:
        return next(job for job in self.jobs if job.jid == jid)


def empty() -> Session:
    return Session([], task_managers=0)


def one_job() -> Session:
    orders = Job(
        "orders",
        "RUNNING",
        pipeline(),
        failures=[(95, "KeyError", TRACEBACK), (430, "JobExecutionError", LOST)],
        slow=3,
        parameters={"currency": "EUR", "topic": "orders"},
    )
    finished = Job("orders backfill", "FINISHED", pipeline(), 86_000, 2_400)
    return Session([orders, finished])


def calm_job() -> Session:
    """A job without failures and with no checkpoint yet, of one vertex."""
    return Session(
        [Job("calm", "RUNNING", [Vertex("Source: Numbers -> Print", [], 1)], checkpoints=0)]
    )


def fifty_jobs() -> Session:
    states = ["RUNNING"] * 6 + ["FINISHED"] * 2 + ["CANCELED", "FAILED"]
    jobs = [
        Job(
            f"pipeline {number:02} of the shop",
            states[number * 7 % 10],
            pipeline(),
            120.0 + 977 * number,
            None if states[number * 7 % 10] == "RUNNING" else 60.0 + 31 * number,
        )
        for number in range(50)
    ]
    return Session(jobs, task_managers=12, slots=16)


def sixty_vertices() -> Session:
    return Session([Job("wide", "RUNNING", wide_graph())], task_managers=8, slots=8)


SESSIONS = {
    "empty": empty,
    "one": one_job,
    "calm": calm_job,
    "fifty": fifty_jobs,
    "wide": sixty_vertices,
}


def shares(vertex: Vertex) -> list[float]:
    if vertex.first_share is None or vertex.parallelism == 1:
        return [1 / vertex.parallelism] * vertex.parallelism
    rest = (1 - vertex.first_share) / (vertex.parallelism - 1)
    return [vertex.first_share, *([rest] * (vertex.parallelism - 1))]


def start_of(job: Job) -> int:
    return now() - int(job.age * 1_000)


def duration_of(job: Job) -> int:
    return int((job.age if job.duration is None else job.duration) * 1_000)


def end_of(job: Job) -> int:
    return start_of(job) + duration_of(job) if job.ended else -1


def task_state(job: Job) -> str:
    return {"FINISHED": "FINISHED", "CANCELED": "CANCELED", "FAILED": "FAILED"}.get(
        job.state, "RUNNING"
    )


def task_counts(job: Job, number: int) -> dict[str, int]:
    return {state: number if state == task_state(job) else 0 for state in STATES}


def io_metrics(job: Job, vertex: Vertex, share: float = 1.0) -> dict[str, Any]:
    seconds = duration_of(job) / 1_000
    records = int(vertex.rate * seconds * share)
    read = 0 if not vertex.inputs else records
    millis = seconds * 1_000
    values = {
        "read-bytes": read * 83,
        "write-bytes": records * 96,
        "read-records": read,
        "write-records": records,
    }
    complete = {f"{name}-complete": True for name in values}
    return {
        **values,
        **complete,
        "accumulated-busy-time": int(vertex.busy * millis * share * vertex.parallelism),
        "accumulated-backpressured-time": int(vertex.pressed * millis),
        "accumulated-idle-time": int(max(0.0, 1 - vertex.busy - vertex.pressed) * millis),
    }


def job_summary(job: Job) -> dict[str, Any]:
    total = sum(vertex.parallelism for vertex in job.vertices)
    return {
        "jid": job.jid,
        "name": job.name,
        "state": job.state,
        "start-time": start_of(job),
        "end-time": end_of(job),
        "duration": duration_of(job),
        "last-modification": start_of(job),
        "tasks": {
            "total": total,
            **{state.lower(): number for state, number in task_counts(job, total).items()},
        },
    }


def job_details(job: Job) -> dict[str, Any]:
    start = start_of(job)
    return {
        "jid": job.jid,
        "name": job.name,
        "isStoppable": False,
        "state": job.state,
        "start-time": start,
        "end-time": end_of(job),
        "duration": duration_of(job),
        "now": now(),
        "maxParallelism": -1,
        "job-type": "STREAMING",
        "schedulerType": "Adaptive",
        "application-id": job.jid,
        "timestamps": {
            "INITIALIZING": start,
            "CREATED": start + 150,
            "RUNNING": start + 900,
            "FAILED": end_of(job) if job.state == "FAILED" else 0,
            "FINISHED": end_of(job) if job.state == "FINISHED" else 0,
            "CANCELED": end_of(job) if job.state == "CANCELED" else 0,
        },
        "status-counts": task_counts(job, len(job.vertices)),
        "vertices": [
            {
                "id": job.vertex_id(index),
                "slotSharingGroupId": identifier("group"),
                "name": vertex.name,
                "maxParallelism": 128,
                "parallelism": vertex.parallelism,
                "status": task_state(job),
                "start-time": start + 900 + 40 * index,
                "end-time": end_of(job),
                "duration": duration_of(job) - 900,
                "tasks": task_counts(job, vertex.parallelism),
                "metrics": io_metrics(job, vertex),
            }
            for index, vertex in enumerate(job.vertices)
        ],
        "plan": {
            "jid": job.jid,
            "name": job.name,
            "type": "STREAMING",
            "nodes": [
                {
                    "id": job.vertex_id(index),
                    "parallelism": vertex.parallelism,
                    "operator": "",
                    "operator_strategy": "",
                    "description": vertex.name.replace(" -> ", "<br/>+- ") + "<br/>",
                    "inputs": [
                        {
                            "num": number,
                            "id": job.vertex_id(source),
                            "ship_strategy": strategy,
                            "exchange": "pipelined_bounded",
                        }
                        for number, (source, strategy) in enumerate(vertex.inputs)
                    ],
                    "optimizer_properties": {},
                }
                for index, vertex in enumerate(job.vertices)
            ],
        },
    }


def subtask_metrics(job: Job, index: int) -> dict[str, list[float]]:
    """Values of all metrics of a vertex, by subtask."""
    vertex = job.vertices[index]
    parts = [share * vertex.parallelism for share in shares(vertex)]
    busy = [
        min(1_000.0, 1_000 * vertex.busy * min(part, 2.6) * wave(index + 3 * n, 0.96, 1.0))
        for n, part in enumerate(parts)
    ]
    pressed = [1_000 * vertex.pressed * wave(index + n, 0.95, 1.0) for n in range(len(parts))]
    rates = [vertex.rate * share * wave(index, 0.85, 1.1) for share in shares(vertex)]
    seconds = duration_of(job) / 1_000
    values = {
        "busyTimeMsPerSecond": busy,
        "backPressuredTimeMsPerSecond": pressed,
        "idleTimeMsPerSecond": [
            max(0.0, 1_000 - b - p) for b, p in zip(busy, pressed, strict=True)
        ],
        "numRecordsOutPerSecond": rates,
        "numRecordsOut": [vertex.rate * share * seconds for share in shares(vertex)],
        "numBytesOutPerSecond": [96 * rate for rate in rates],
        "currentOutputWatermark": [now() - 1_500.0 - 400 * index] * len(rates),
        "numLateRecordsDropped": [0.0] * len(rates),
    }
    if vertex.inputs:
        values |= {
            "numRecordsInPerSecond": rates,
            "numRecordsIn": values["numRecordsOut"],
            "numBytesInPerSecond": [83 * rate for rate in rates],
            "currentInputWatermark": [now() - 1_500.0 - 400 * index] * len(rates),
        }
    return values


def skew(values: list[float]) -> float:
    average = sum(values) / len(values)
    if average == 0:
        return 0.0
    return min(100.0, 100 * sum(abs(v - average) for v in values) / len(values) / average)


def aggregated_metrics(job: Job, index: int, wanted: list[str]) -> list[dict[str, Any]]:
    metrics = subtask_metrics(job, index)
    if not wanted:
        return [{"id": name} for name in metrics]
    return [
        {
            "id": name,
            "min": min(metrics[name]),
            "max": max(metrics[name]),
            "avg": sum(metrics[name]) / len(metrics[name]),
            "sum": sum(metrics[name]),
            "skew": skew(metrics[name]),
        }
        for name in wanted
        if name in metrics
    ]


def vertex_metrics(job: Job, index: int, wanted: list[str]) -> list[dict[str, str]]:
    values = {
        f"{subtask}.{name}": value
        for name, of_subtasks in subtask_metrics(job, index).items()
        for subtask, value in enumerate(of_subtasks)
    }
    if not wanted:
        return [{"id": name} for name in values]
    return [{"id": name, "value": str(values[name])} for name in wanted if name in values]


def vertex_details(job: Job, index: int) -> dict[str, Any]:
    vertex = job.vertices[index]
    return {
        "id": job.vertex_id(index),
        "name": vertex.name,
        "parallelism": vertex.parallelism,
        "maxParallelism": 128,
        "now": now(),
        "subtasks": [
            {
                "subtask": number,
                "status": task_state(job),
                "attempt": len(job.failures),
                "endpoint": f"10.0.0.{number % 3 + 1}:40000",
                "start_time": start_of(job) + 900,
                "start-time": start_of(job) + 900,
                "end-time": end_of(job),
                "duration": duration_of(job) - 900,
                "taskmanager-id": f"executor-{number % 2}",
                "status-duration": dict.fromkeys(STATES, -1),
                "metrics": io_metrics(job, vertex, share),
            }
            for number, share in enumerate(shares(vertex))
        ],
    }


def back_pressure(job: Job, index: int) -> dict[str, Any]:
    metrics = subtask_metrics(job, index)
    pressed = [value / 1_000 for value in metrics["backPressuredTimeMsPerSecond"]]
    level = lambda ratio: "high" if ratio > 0.5 else "low" if ratio > 0.1 else "ok"  # noqa: E731
    return {
        "status": "ok",
        "backpressure-level": level(max(pressed)),
        "backpressureLevel": level(max(pressed)),
        "end-timestamp": now(),
        "subtasks": [
            {
                "subtask": number,
                "backpressure-level": level(ratio),
                "backpressureLevel": level(ratio),
                "ratio": ratio,
                "busyRatio": metrics["busyTimeMsPerSecond"][number] / 1_000,
                "idleRatio": metrics["idleTimeMsPerSecond"][number] / 1_000,
            }
            for number, ratio in enumerate(pressed)
        ],
    }


def job_back_pressure(job: Job) -> dict[str, Any]:
    """Firesteel's own call: the vertex after a back-pressured one that is not so itself."""
    described = [
        {
            "id": job.vertex_id(index),
            "name": vertex.name,
            "level": "high" if vertex.pressed > 0.5 else "ok",
            "ratio": vertex.pressed,
            "busy": vertex.busy,
        }
        for index, vertex in enumerate(job.vertices)
    ]
    roots = [
        described[index]
        for index, vertex in enumerate(job.vertices)
        if vertex.busy > 0.9 and any(job.vertices[source].pressed for source, _ in vertex.inputs)
    ]
    return {"roots": roots, "vertices": described}


def subtask_times(job: Job, index: int) -> dict[str, Any]:
    vertex = job.vertices[index]
    start = start_of(job)
    return {
        "id": job.vertex_id(index),
        "name": vertex.name,
        "now": now(),
        "subtasks": [
            {
                "subtask": number,
                "endpoint": f"10.0.0.{number % 3 + 1}:40000",
                "duration": duration_of(job),
                "timestamps": {
                    **dict.fromkeys(STATES, 0),
                    "CREATED": start,
                    "SCHEDULED": start + 8_000,
                    "DEPLOYING": start + 14_000,
                    "INITIALIZING": start + 20_000 + 5_000 * number,
                    "RUNNING": start + 40_000 + 9_000 * number,
                },
            }
            for number in range(vertex.parallelism)
        ],
    }


def flame_graph(job: Job, kind: str) -> dict[str, Any]:
    """As the server answers: the first request makes it sample, and there is no graph yet."""
    if job.requests_before_samples:
        job.requests_before_samples -= 1
        return {"endTimestamp": -1, "data": None}
    stacks: dict[tuple[str, ...], int]
    if kind == "off_cpu":
        stacks = {("run", "process_batch", "queue.get"): 610, ("run", "poll", "select"): 240}
    else:
        stacks = {
            ("run", "process_batch", "enrich (orders.py:45)", "price (prices.py:9)"): 420,
            ("run", "process_batch", "enrich (orders.py:45)", "json.loads"): 910,
            ("run", "process_batch", "enrich (orders.py:45)", "customer_of (cache.py:31)"): 330,
            ("run", "process_batch", "enrich (orders.py:45)"): 60,
            ("run", "process_batch", "RecordWriter.emit", "pickle.dumps"): 145,
            ("run", "InputGate.next", "pickle.loads"): 190,
        }
    root: dict[str, Any] = {"name": "root", "value": 0, "children": []}
    for stack, samples in stacks.items():
        node = root
        node["value"] += samples
        for name in stack:
            child = next((one for one in node["children"] if one["name"] == name), None)
            if child is None:
                child = {"name": name, "value": 0, "children": []}
                node["children"].append(child)
            child["value"] += samples
            node = child
    return {"endTimestamp": now(), "data": root}


SLOW = (
    "It took 8.4 s. The longest part, 7.1 s, was the way of the barrier from the sources to "
    "'Enrich with customer' (3/4). The cause is back pressure: the records before the barrier had to "
    "be processed first."
)


def checkpoint(job: Job, back: int) -> dict[str, Any]:
    """The checkpoint that is ``back`` steps older than the newest."""
    number = 74 - back
    trigger = now() // 10_000 * 10_000 - 10_000 * back
    slow, failed, savepoint = back == job.slow, back == 6, back == 5
    duration = 8_400 if slow else 420 + 90 * (number * 7 % 5)
    subtasks = sum(vertex.parallelism for vertex in job.vertices)
    return {
        "className": "failed" if failed else "completed",
        "id": number,
        "status": "FAILED" if failed else "COMPLETED",
        "is_savepoint": savepoint,
        "checkpoint_type": "SAVEPOINT" if savepoint else "CHECKPOINT",
        "savepointFormat": "CANONICAL" if savepoint else None,
        "trigger_timestamp": trigger,
        "latest_ack_timestamp": trigger + duration,
        "end_to_end_duration": duration,
        "checkpointed_size": 1_830_000 + 21_000 * (number % 6),
        "state_size": 48_200_000 + 310_000 * number,
        "processed_data": 0,
        "persisted_data": 0,
        "alignment_buffered": 0,
        "num_subtasks": subtasks,
        "num_acknowledged_subtasks": subtasks - (2 if failed else 0),
        "external_path": None if failed else f"file:/checkpoints/{job.jid}/chk-{number}",
        "discarded": not failed and back > 1 and not savepoint,
        "failure_message": "Checkpoint expired before completing." if failed else None,
        "failure_timestamp": trigger + duration if failed else None,
        "explanation": SLOW if slow else None,
        "tasks": {},
    }


def checkpoints(job: Job) -> dict[str, Any]:
    history = [checkpoint(job, back) for back in range(job.checkpoints)]
    completed = [one for one in history if one["status"] == "COMPLETED" and not one["is_savepoint"]]
    failed = [one for one in history if one["status"] == "FAILED"]
    savepoints = [one for one in history if one["is_savepoint"]]
    spread = {"min": 420, "max": 8_400, "avg": 1_210, "p50": 600, "p90": 780}
    sizes = {
        "min": 1_830_000,
        "max": 1_950_000,
        "avg": 1_880_000,
        "p50": 1_880_000,
        "p90": 1_940_000,
    }
    return {
        "counts": {
            "restored": len(job.failures),
            "total": 75 if history else 0,
            "in_progress": 0,
            "completed": 73 if history else 0,
            "failed": len(failed),
        },
        "summary": {
            "end_to_end_duration": {**spread, "p95": 800, "p99": 8_400, "p999": 8_400},
            "checkpointed_size": {**sizes, "p95": 1_945_000, "p99": 1_950_000, "p999": 1_950_000},
            "state_size": dict.fromkeys(
                ("min", "max", "avg", "p50", "p90", "p99", "p999"), 71_140_000
            ),
            "processed_data": dict.fromkeys(("min", "max", "avg"), 0)
            | dict.fromkeys(("p50", "p90", "p99", "p999"), "NaN"),
            "persisted_data": dict.fromkeys(("min", "max", "avg"), 0)
            | dict.fromkeys(("p50", "p90", "p99", "p999"), "NaN"),
        },
        "latest": {
            "completed": completed[0] if completed else None,
            "savepoint": savepoints[0] if savepoints else None,
            "failed": failed[0] if failed else None,
            "restored": {
                "id": 65,
                "restore_timestamp": now() - 94_000,
                "is_savepoint": False,
                "external_path": f"file:/checkpoints/{job.jid}/chk-65",
            }
            if job.failures
            else None,
        },
        "history": history,
    }


def checkpoint_details(job: Job, number: int) -> dict[str, Any]:
    found = checkpoint(job, 74 - number)
    return {
        **found,
        "tasks": {
            job.vertex_id(index): {
                "id": number,
                "status": found["status"],
                "num_subtasks": vertex.parallelism,
                "num_acknowledged_subtasks": vertex.parallelism,
                "latest_ack_timestamp": found["latest_ack_timestamp"],
                "end_to_end_duration": found["end_to_end_duration"]
                - 20 * (len(job.vertices) - index),
                "checkpointed_size": found["checkpointed_size"] // len(job.vertices),
                "state_size": found["state_size"] // len(job.vertices),
                "processed_data": 0,
                "persisted_data": 0,
                "alignment_buffered": 0,
            }
            for index, vertex in enumerate(job.vertices)
        },
    }


def checkpoint_subtasks(job: Job, number: int, index: int) -> dict[str, Any]:
    found = checkpoint(job, 74 - number)
    total = found["end_to_end_duration"]
    vertex = job.vertices[index]
    return {
        "summary": {},
        "subtasks": [
            {
                "className": "completed",
                "index": subtask,
                "status": "completed",
                "ack_timestamp": found["latest_ack_timestamp"],
                "end_to_end_duration": int(total * (0.7 + 0.07 * subtask)),
                "checkpointed_size": int(found["checkpointed_size"] * share / 7),
                "state_size": int(found["state_size"] * share / 7),
                "checkpoint": {"sync": 40 + 11 * subtask, "async": 120 + 25 * subtask},
                "alignment": {
                    "duration": int(total * 0.04 * subtask),
                    "buffered": 0,
                    "processed": 0,
                    "persisted": 0,
                },
                "start_delay": int(total * 0.6),
                "unaligned_checkpoint": False,
                "aborted": False,
            }
            for subtask, share in enumerate(shares(vertex))
        ],
    }


CHECKPOINT_CONFIG = {
    "mode": "exactly_once",
    "interval": 10_000,
    "timeout": 600_000,
    "min_pause": 0,
    "max_concurrent": 1,
    "externalization": {"enabled": True, "delete_on_cancellation": False},
    "state_backend": "HashMapStateBackend",
    "checkpoint_storage": "FileSystemCheckpointStorage",
    "unaligned_checkpoints": False,
    "tolerable_failed_checkpoints": 0,
    "aligned_checkpoint_timeout": 0,
    "checkpoints_after_tasks_finish": True,
    "state_changelog_enabled": False,
}


def exceptions(job: Job) -> dict[str, Any]:
    entries = [
        {
            "exceptionName": name,
            "stacktrace": text,
            "timestamp": now() - int(ago * 1_000),
            "taskName": "Enrich with customer (3/4)",
            "endpoint": "10.0.0.3:40000",
            "taskManagerId": "executor-1",
            "failureLabels": {},
            "concurrentExceptions": [],
        }
        for ago, name, text in job.failures
    ]
    return {"exceptionHistory": {"truncated": False, "entries": entries}}


def task_manager(session: Session, number: int) -> dict[str, Any]:
    used = min(session.slots, 5 + number % 4) if any(not job.ended for job in session.jobs) else 0
    resource = {
        "cpuCores": 1.0,
        "taskHeapMemory": 512,
        "taskOffHeapMemory": 0,
        "managedMemory": 0,
        "networkMemory": 64,
        "extendedResources": {},
    }
    running = [job for job in session.jobs if not job.ended]
    return {
        "id": f"executor-{number}",
        "path": f"spark://10.0.0.{number + 1}:7078",
        "dataPort": 40_000,
        "jmxPort": -1,
        "timeSinceLastHeartbeat": now() - 700,
        "slotsNumber": session.slots,
        "freeSlots": session.slots - used,
        "assignedTasks": used * 4,
        "hardware": {
            "cpuCores": session.slots,
            "physicalMemory": 33_600_000_000,
            "freeMemory": 11_200_000_000,
            "managedMemory": 0,
        },
        "totalResource": resource,
        "freeResource": resource,
        "allocatedSlots": [
            {"jobId": running[slot % len(running)].jid, "assignedTasks": 4, "resource": resource}
            for slot in range(used)
        ],
        "metrics": {
            "heapUsed": 812_000_000,
            "heapCommitted": 1_400_000_000,
            "heapMax": 2_100_000_000,
            "nonHeapUsed": 220_000_000,
            "nonHeapCommitted": 230_000_000,
            "nonHeapMax": -1,
            "directCount": 12,
            "directUsed": 48_000_000,
            "directMax": 48_000_000,
            "mappedCount": 0,
            "mappedUsed": 0,
            "mappedMax": 0,
            "garbageCollectors": [{"name": "G1 Young Generation", "count": 113, "time": 1_204}],
        },
    }


LOG = "\n".join(
    f"2026-03-14 10:{minute:02}:07,113 {level} [orders] {place} - {text}"
    for minute, (level, place, text) in enumerate(
        [
            ("INFO ", "Enrich with customer (1/4)", "opened the cache with 10,000 customers"),
            ("INFO ", "Source: Orders (1/4)", "reads partitions 0 and 4 of topic orders"),
            ("WARN ", "Enrich with customer (3/4)", "customer c-1881 is not in the cache"),
            ("ERROR", "Enrich with customer (3/4)", "KeyError: 'XBT'"),
            ("INFO ", "job master", "the job returns to checkpoint 65"),
        ]
        * 8
    )
)

THREADS = {
    "threadInfos": [
        {
            "threadName": "MainThread",
            "stringifiedThreadInfo": '"MainThread" RUNNABLE\n\tat price (prices.py:12)\n\tat enrich (orders.py:48)\n',
        },
        {
            "threadName": "barriers",
            "stringifiedThreadInfo": '"barriers" WAITING\n\tat wait (threading.py:320)\n',
        },
    ]
}


def profiles() -> list[dict[str, Any]]:
    """Profiles of a process: one that is ready, and one that failed."""
    begun = now() - 60_000
    return [
        {
            "status": "FINISHED",
            "mode": "CPU",
            "triggerTime": begun,
            "finishedTime": begun + 30_000,
            "duration": 30,
            "message": "Profiling Successful",
            "outputFile": "executor-1_CPU_2026-03-14_10_12_07.html",
        },
        {
            "status": "FAILED",
            "mode": "WALL",
            "triggerTime": begun - 90_000,
            "finishedTime": begun - 80_000,
            "duration": 10,
            "message": "The process has ended",
            "outputFile": None,
        },
    ]


def program() -> dict[str, Any]:
    return {"id": f"{'7' * 32}_orders.py", "name": "orders.py", "uploaded": now(), "entry": []}
