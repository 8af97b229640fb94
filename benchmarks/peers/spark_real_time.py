"""Spark's own Real-time Mode without Python: a streaming aggregation, for its latency only.

The source is the only one in Spark's own packages that this mode takes, apart from tests of Kafka. It
looks for records every 10 ms and fetches them one by one, which limits the rate. Spark has no sink
that tells when a record arrives, so the last projection writes the time into the properties of the
JVM.
"""

import tempfile
import time
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the conventional name

from benchmarks.latency import (
    COMMON_CASES,
    GRACE_SECONDS,
    LatencyCase,
    Timeline,
    report_latency,
)
from benchmarks.measure import (
    Arguments,
    parse_arguments,
    report,
    report_skipped,
    report_versions,
)
from firesteel.spark.java import java_environment

_LEAD_NANOSECONDS = 10_000_000_000
_SETTINGS = {
    "spark.master": "local[16]",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.shuffle.streaming.networkBufferMaxWaitTimeMs": "1",
    "spark.sql.adaptive.enabled": "false",
    # The sink that drops everything is not on the list.
    "spark.sql.streaming.realTimeMode.allowlistCheck": "false",
}
_MARK = "due-"
# Records the time in nanoseconds of a clock that Python reads, too.
_ARRIVE = (
    f"java_method('java.lang.System', 'setProperty', concat('{_MARK}', due), "
    "java_method('java.lang.System', 'nanoTime')) AS arrived"
)


def obstacle(case: LatencyCase) -> str | None:
    if case.checkpoints:
        return "a batch, which ends with a checkpoint, takes at least 5 s"
    if case.exchanges > 1:
        return "two aggregations in a row are not possible in update mode"
    if case.rate > 1_000:
        return "its source fetches records one by one"
    return None


def measure_case(session: SparkSession, arguments: Arguments, case: LatencyCase) -> None:
    jvm: Any = session._jvm  # noqa: SLF001
    sources = jvm.org.apache.spark.sql.execution.streaming.sources
    streams = getattr(getattr(sources, "LowLatencyMemoryStream$"), "MODULE$")
    stream = streams.apply(
        session._jsparkSession,  # noqa: SLF001
        arguments.parallelism,
        jvm.org.apache.spark.sql.Encoders.LONG(),
    )
    keyed = DataFrame(stream.toDF(), session).groupBy(F.expr("value DIV 1000000 % 997"))
    results = keyed.agg(F.max("value").alias("due"))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        query = (
            results.selectExpr(_ARRIVE)
            .writeStream.format("noop")
            .outputMode("update")
            .option("checkpointLocation", directory)
            .trigger(realTime="30 minutes")  # type: ignore[call-overload]  # its stub is older
            .start()
        )
        try:
            timeline = Timeline.of(case, arguments.scale, time.time_ns() + _LEAD_NANOSECONDS)
            feed(jvm, stream, timeline, arguments.parallelism)
            time.sleep(min(2.0, GRACE_SECONDS))
            failure = query.exception()
            if failure is not None:
                raise RuntimeError(str(failure)[:300])
            found = taken_arrivals(jvm, timeline)
        finally:
            query.stop()
    report_latency(case, found, timeline.results(case))


def feed(jvm: Any, stream: Any, timeline: Timeline, parallelism: int) -> None:
    """Add each record to the source when it is due."""
    to_scala = jvm.scala.jdk.javaapi.CollectionConverters.asScala
    sent = 0
    while sent < timeline.records:
        due = min(timeline.records, int((time.time_ns() - timeline.begin) / timeline.step))
        if due <= sent:
            time.sleep(0.0005)
            continue
        rows = jvm.java.util.ArrayList()
        for index in range(sent, due):
            rows.add(timeline.due(index))
        stream.addData(sent // 7 % parallelism, to_scala(rows))
        sent = due


def taken_arrivals(jvm: Any, timeline: Timeline) -> list[float]:
    """Return the milliseconds of all records that count, in order, and forget them."""
    properties = jvm.java.lang.System.getProperties()
    offset = time.time_ns() - time.monotonic_ns()
    found = []
    for name in list(properties.stringPropertyNames()):
        if not name.startswith(_MARK):
            continue
        due = int(name.removeprefix(_MARK))
        arrived = int(properties.remove(name)) + offset
        if timeline.counted < due <= timeline.end:
            found.append((arrived - due) / 1e6)
    return sorted(found)


def main() -> None:
    arguments = parse_arguments("Spark's Real-time Mode")
    report_versions("pyspark")
    for one in arguments.cases:
        report(case=one.name, skipped="not a case for this peer")
    if "latency" not in arguments.options:
        return
    arguments.wait_for_turn("sections")
    builder = SparkSession.builder.appName("benchmark")
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    with java_environment():
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    for case in COMMON_CASES:
        reason = obstacle(case)
        if reason is None:
            measure_case(session, arguments, case)
        else:
            report_skipped("latency", case.title, reason)
    session.stop()


if __name__ == "__main__":
    main()
