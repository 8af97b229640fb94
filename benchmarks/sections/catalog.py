"""Catalog of all sections, in the order of measurement and display."""

from benchmarks.sections import (
    async_io,
    backend,
    checkpoint,
    epoch,
    hop,
    idle,
    join,
    recovery,
    snapshot,
    timeout,
    timer,
    window,
)

SECTIONS = {
    section.name: section
    for section in (
        hop.SECTION,
        timeout.SECTION,
        epoch.SECTION,
        checkpoint.SECTION,
        snapshot.SECTION,
        recovery.SECTION,
        backend.SECTION,
        window.SECTION,
        join.SECTION,
        timer.SECTION,
        idle.SECTION,
        async_io.SECTION,
    )
}
