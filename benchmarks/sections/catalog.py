"""Catalog of all sections, in the order of measurement and display."""

from benchmarks.sections import (
    async_io,
    back_pressure,
    backend,
    checkpoint,
    checkpoint_latency,
    epoch,
    formats,
    hop,
    idle_job,
    idle_keys,
    join,
    kafka,
    key_memory,
    latency,
    reaction,
    recovery,
    savepoint,
    scale,
    snapshot,
    timeout,
    timer,
    window,
)

SECTIONS = {
    section.name: section
    for section in (
        latency.SECTION,
        reaction.SECTION,
        checkpoint_latency.SECTION,
        idle_job.SECTION,
        back_pressure.SECTION,
        hop.SECTION,
        timeout.SECTION,
        epoch.SECTION,
        checkpoint.SECTION,
        snapshot.SECTION,
        savepoint.SECTION,
        recovery.SECTION,
        backend.SECTION,
        window.SECTION,
        join.SECTION,
        timer.SECTION,
        idle_keys.SECTION,
        key_memory.SECTION,
        async_io.SECTION,
        formats.SECTION,
        kafka.SECTION,
        scale.SECTION,
    )
}
