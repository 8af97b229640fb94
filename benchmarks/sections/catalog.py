"""All sections, in the order in which they are measured and shown."""

from benchmarks.sections import backend, checkpoint, epoch, hop, recovery, snapshot, timeout

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
    )
}
