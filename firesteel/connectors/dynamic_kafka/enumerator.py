"""Follows the streams of a DynamicKafkaSource, with an enumerator of partitions for each cluster."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from firesteel.connectors.base import SourceSplit, SplitEnumerator
from firesteel.connectors.dynamic_kafka.clusters import Cluster, unwrap, wrap

if TYPE_CHECKING:
    from firesteel.connectors.dynamic_kafka.source import DynamicKafkaSource

__all__ = ["DynamicKafkaEnumerator"]

_LOG = logging.getLogger(__name__)

_IDLE_SECONDS = 60.0


class DynamicKafkaEnumerator(SplitEnumerator):
    """Asks the metadata service periodically, and finds the partitions of its clusters.

    A cluster or a topic that the service no longer names is given up: its partitions are not part of
    the next checkpoint. If it comes back, it is read from the starting offsets of the source, or a
    topic of a known cluster from its start.
    """

    def __init__(self, source: DynamicKafkaSource, parallelism: int, state: Any) -> None:
        """Ask for the streams, and find their partitions.

        Args:
            source: The source.
            parallelism: The number of readers.
            state: The result of ``snapshot_state``, or None.
        """
        self._source = source
        self._parallelism = parallelism
        self._clusters: dict[str, Cluster] = {}
        self._inner: dict[str, SplitEnumerator] = {}
        self._generations: dict[str, int] = dict(state["generations"]) if state else {}
        # The time at which the enumerator of a cluster looks for partitions again.
        self._due: dict[str, float] = {}
        # Splits of new enumerators.
        self._found: dict[str, Sequence[SourceSplit]] = {}
        self._failures = 0
        self._apply(source.clusters(), state["clusters"] if state else {})
        self._next_request = time.monotonic() + (source.discovery_interval or 0.0)

    def discover_splits(self) -> Sequence[SourceSplit]:
        found = self._take_found()
        interval = self._source.discovery_interval
        if interval is not None and time.monotonic() >= self._next_request:
            self._next_request = time.monotonic() + interval
            self._follow()
            found += self._take_found()
        for name, inner in self._inner.items():
            now = time.monotonic()
            if now < self._due[name] or inner.is_complete():
                continue
            try:
                found += [self._wrap(name, split) for split in inner.discover_splits()]
            except Exception:
                if self._source.is_active(name):
                    raise
                _LOG.warning("Kafka cluster %s is not active and not searched", name)
            self._due[name] = now + inner.next_discovery_delay()
        return found

    def _take_found(self) -> list[SourceSplit]:
        ready, self._found = self._found, {}
        return [self._wrap(name, split) for name, splits in ready.items() for split in splits]

    def _wrap(self, name: str, split: SourceSplit) -> SourceSplit:
        return wrap(split, name, self._generations[name])

    def is_complete(self) -> bool:
        if self._source.discovery_interval is not None:
            return False
        return not self._found and all(inner.is_complete() for inner in self._inner.values())

    def next_discovery_delay(self) -> float:
        if self._found:
            return 0.0
        now = time.monotonic()
        times = [due for name, due in self._due.items() if not self._inner[name].is_complete()]
        if self._source.discovery_interval is not None:
            times.append(self._next_request)
        return max(0.0, min(times, default=now + _IDLE_SECONDS) - now)

    def snapshot_state(self) -> Any:
        return {
            "generations": dict(self._generations),
            "clusters": {
                name: {
                    "topics": sorted(self._clusters[name].topics),
                    "state": inner.snapshot_state(),
                }
                for name, inner in self._inner.items()
            },
        }

    def checkpoint_complete(self, splits: Sequence[SourceSplit]) -> None:
        for name, inner in self._inner.items():
            own = [
                unwrap(split)
                for split in splits
                if split.properties["cluster"] == name
                and split.properties["properties"]["topic"] in self._clusters[name].topics
            ]
            inner.checkpoint_complete(own)

    def close(self) -> None:
        for inner in self._inner.values():
            inner.close()
        self._source.service.close()

    def _follow(self) -> None:
        """Ask for the streams. A failure counts, and enough of them in a row fail the job."""
        try:
            self._apply(self._source.clusters(), self.snapshot_state()["clusters"])
        except Exception as error:
            self._failures += 1
            if self._failures >= self._source.failure_threshold:
                raise
            _LOG.warning("The streams of %r cannot be described: %s", self._source, error)
        else:
            self._failures = 0

    def _apply(self, wanted: dict[str, Cluster], states: Mapping[str, Any]) -> None:
        """Make an enumerator for each cluster that is new or has changed, and drop the others."""
        made: dict[str, SplitEnumerator] = {}
        found: dict[str, Sequence[SourceSplit]] = {}
        try:
            for name, cluster in wanted.items():
                if self._clusters.get(name) != cluster:
                    made[name] = self._enumerator(name, cluster, states.get(name))
                    # Raises an error for a topic that does not exist.
                    found[name] = made[name].discover_splits()
        except BaseException:
            for inner in made.values():
                inner.close()
            raise
        for name in [*self._inner]:
            if name in made or name not in wanted:
                self._inner.pop(name).close()
                self._due.pop(name)
        for name in states.keys() | wanted.keys():
            before = set(states[name]["topics"]) if name in states else set()
            after = wanted[name].topics if name in wanted else frozenset()
            known = self._generations.setdefault(name, 0)
            if before - after:
                self._generations[name] = known + 1
        self._clusters = wanted
        self._inner |= made
        self._found |= found
        now = time.monotonic()
        self._due |= {name: now + inner.next_discovery_delay() for name, inner in made.items()}

    def _enumerator(self, name: str, cluster: Cluster, state: Any) -> SplitEnumerator:
        inner = self._source.source_of(name, cluster)
        if state is None:
            return inner.create_enumerator(self._parallelism)
        kept = dict(state["state"])
        kept["partitions"] = [one for one in kept["partitions"] if one[0] in cluster.topics]
        ids = kept.get("topic_ids", {})
        kept["topic_ids"] = {topic: one for topic, one in ids.items() if topic in cluster.topics}
        # Topics that are new in a known cluster have not been looked for.
        kept["complete"] = kept["complete"] and cluster.topics <= set(state["topics"])
        return inner.create_enumerator(self._parallelism, kept)
