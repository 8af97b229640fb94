"""The interface of a keyed state backend: the keyed state of one operator subtask."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from firesteel.common.typeinfo import TypeInformation
from firesteel.state.changelog import Segment, SegmentStore
from firesteel.state.changes import StateEntry
from firesteel.state.key_groups import KeyGroupRange, key_group_of
from firesteel.state.tables import ListTable, MapTable, Table, TableDescription, ValueTable


class KeyGroupFilter(NamedTuple):
    """Which keys a subtask takes over from the state of others."""

    key_groups: KeyGroupRange
    max_parallelism: int

    def picks(self, table: TableDescription) -> Callable[[Any], bool]:
        """Whether a key of the table (a pair if it is namespaced) is one of them."""
        groups, max_parallelism = self
        if table.namespaced:
            return lambda pair: key_group_of(pair[0], max_parallelism) in groups
        return lambda key: key_group_of(key, max_parallelism) in groups


class KeyedStateBackend(ABC):
    """Tables by name. ``seal`` ends an epoch, ``confirm`` makes its changes the base.

    A table is declared by asking for it; asking again with another description is an error, and
    so is asking for another one than was restored.
    """

    in_memory: ClassVar[bool]
    """Whether everything is kept as objects of the process."""

    @abstractmethod
    def value_table(
        self,
        name: str,
        *,
        namespaced: bool = False,
        element_type: TypeInformation | None = None,
        ttl: bool = False,
    ) -> ValueTable: ...

    @abstractmethod
    def list_table(
        self,
        name: str,
        *,
        namespaced: bool = False,
        element_type: TypeInformation | None = None,
        ttl: bool = False,
    ) -> ListTable: ...

    @abstractmethod
    def map_table(
        self,
        name: str,
        *,
        namespaced: bool = False,
        entry_type: TypeInformation | None = None,
        element_type: TypeInformation | None = None,
        ttl: bool = False,
    ) -> MapTable: ...

    @abstractmethod
    def drop_table(self, name: str) -> None:
        """Forget a table, its name and all it holds, as a change of the running epoch.

        It is for tables that come and go, such as those of windows, and costs little however much
        is in them. All subtasks of an operator drop such a table in the same epoch.
        """

    @abstractmethod
    def descriptions(self) -> Mapping[str, TableDescription]:
        """What every table holds, by its name."""

    @abstractmethod
    def keys(self, table: str) -> Iterator[Any]:
        """The keys of a table, as its ``keys`` gives them."""

    @abstractmethod
    def declared(self) -> frozenset[str]:
        """The tables that were asked for. Others were restored, and nobody uses them."""

    @abstractmethod
    def leave_out_of_full_segments(self, table: Table, expired: Callable[[Any], bool]) -> None:
        """A full segment need not have the elements of ``table`` for which ``expired`` is true."""

    @abstractmethod
    def seal(self, epoch: int, store: SegmentStore) -> tuple[Segment, ...]:
        """Write down what the epoch changed, and hand over what was written in the background.

        A full segment of epoch e replaces all segments of epochs up to e, and no later ones.
        """

    @abstractmethod
    def take_background_seconds(self) -> float:
        """How long it took to write, in the background, what ``seal`` has handed over since the last call."""

    @abstractmethod
    def write_everything(self, epoch: int, store: SegmentStore) -> Segment:
        """A full segment, written at once, in the format that all backends read (savepoints)."""

    @abstractmethod
    def confirm(self) -> None:
        """The epoch sealed last is confirmed: its changes become the base."""

    @abstractmethod
    def restore(
        self,
        segments: Sequence[Segment],
        store: SegmentStore,
        only: KeyGroupFilter | None = None,
    ) -> None:
        """Become what the segments say: a full one first, or none, then changes in order.

        The tables stay the same objects: operators hold on to them. With ``only``, keys of other
        key groups are left out.
        """

    @abstractmethod
    def add(
        self,
        segments: Sequence[Segment],
        store: SegmentStore,
        only: KeyGroupFilter | None = None,
    ) -> None:
        """Add another subtask's state to the base, of which it has no key yet (rescaling).

        The next ``seal`` writes everything: the segments belong to somebody else.
        """

    @abstractmethod
    def entries(self, only: Collection[str] | None = None) -> Iterator[StateEntry]:
        """Everything, or some tables, to be read by people and tools."""

    def pickles(self, only: Collection[str]) -> Iterator[tuple[str, bytes]]:
        """What ``entries`` would unpickle, closed, with the name of its table."""
        return iter(())

    @abstractmethod
    def load(
        self, descriptions: Mapping[str, TableDescription], entries: Iterable[StateEntry]
    ) -> None:
        """Add entries to the base. No segment has them, so the next ``seal`` writes everything."""

    @abstractmethod
    def close(self) -> None:
        """Let go of threads and files."""

    def snapshot(self) -> dict[str, dict[Any, Any]]:
        """A copy of everything for tests: table name -> key or (key, namespace) -> value."""
        tables: dict[str, dict[Any, Any]] = {name: {} for name in self.descriptions()}
        for table, key, namespace, value in self.entries():
            namespaced = self.descriptions()[table].namespaced
            tables[table][(key, namespace) if namespaced else key] = value
        return tables
