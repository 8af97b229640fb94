"""The time to live of state: the settings that backends follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from firesteel.common.time import Duration, Time

_DEFAULT_COMPACTION_TIME = Duration.of_days(30)


class _UpdateType(Enum):
    """The accesses that prolong the life of a value."""

    Disabled = 0
    OnCreateAndWrite = 1
    OnReadAndWrite = 2


class _StateVisibility(Enum):
    """The visibility of values that have expired but are still stored."""

    ReturnExpiredIfNotCleanedUp = 0
    NeverReturnExpired = 1


class _TtlTimeCharacteristic(Enum):
    """The clock that decides when a value expires."""

    ProcessingTime = 0


class _Strategies(Enum):
    """The ways to remove expired values."""

    FULL_STATE_SCAN_SNAPSHOT = 0
    INCREMENTAL_CLEANUP = 1
    ROCKSDB_COMPACTION_FILTER = 2


class _CleanupStrategy:
    """Base of the ways to remove expired values."""


@dataclass(frozen=True)
class _EmptyCleanupStrategy(_CleanupStrategy):
    """A way without parameters."""


@dataclass(frozen=True)
class _IncrementalCleanupStrategy(_CleanupStrategy):
    """Checks a few entries at each access of state, and optionally at each record."""

    cleanup_size: int
    for_every_record: bool

    def get_cleanup_size(self) -> int:
        """Return the number of entries that are checked at once."""
        return self.cleanup_size

    def run_cleanup_for_every_record(self) -> bool:
        """Return True if each record checks entries, not only each access of state."""
        return self.for_every_record


@dataclass(frozen=True)
class _RocksdbCompactFilterCleanupStrategy(_CleanupStrategy):
    """Drops expired entries while RocksDB compacts its files."""

    query_time_after_num_entries: int
    periodic_compaction_time: Duration = _DEFAULT_COMPACTION_TIME

    def get_query_time_after_num_entries(self) -> int:
        """Return the number of entries after which the clock is read again."""
        return self.query_time_after_num_entries

    def get_periodic_compaction_time(self) -> Duration:
        """Return the age at which files are compacted again."""
        return self.periodic_compaction_time


@dataclass(frozen=True)
class _CleanupStrategies:
    """The ways to remove expired values that a program chose."""

    strategies: Mapping[_Strategies, _CleanupStrategy] = field(default_factory=dict)
    cleanup_in_background: bool = True

    Strategies = _Strategies
    CleanupStrategy = _CleanupStrategy
    EmptyCleanupStrategy = _EmptyCleanupStrategy
    IncrementalCleanupStrategy = _IncrementalCleanupStrategy
    RocksdbCompactFilterCleanupStrategy = _RocksdbCompactFilterCleanupStrategy

    def is_cleanup_in_background(self) -> bool:
        """Return True if the backend removes expired values by its default way, too."""
        return self.cleanup_in_background

    def in_full_snapshot(self) -> bool:
        """Return True if snapshots leave expired values out."""
        return _Strategies.FULL_STATE_SCAN_SNAPSHOT in self.strategies

    def get_incremental_cleanup_strategy(self) -> _IncrementalCleanupStrategy | None:
        """Return the settings of the incremental cleanup, or None if it is off."""
        chosen = self.strategies.get(_Strategies.INCREMENTAL_CLEANUP)
        if isinstance(chosen, _IncrementalCleanupStrategy):
            return chosen
        return _IncrementalCleanupStrategy(5, False) if self.cleanup_in_background else None

    def get_rocksdb_compact_filter_cleanup_strategy(
        self,
    ) -> _RocksdbCompactFilterCleanupStrategy | None:
        """Return the settings of the cleanup by compaction, or None if it is off."""
        chosen = self.strategies.get(_Strategies.ROCKSDB_COMPACTION_FILTER)
        if isinstance(chosen, _RocksdbCompactFilterCleanupStrategy):
            return chosen
        return _RocksdbCompactFilterCleanupStrategy(1000) if self.cleanup_in_background else None


def _positive(ttl: Time | Duration) -> Time:
    """Return a time to live after a check. Newer versions of Flink take a Duration, PyFlink a Time."""
    if isinstance(ttl, Duration):
        ttl = Time.milliseconds(ttl.to_millis())
    if not isinstance(ttl, Time):
        raise TypeError(
            f"A time to live must be a Time such as Time.hours(1), or a Duration, got {ttl!r}"
        )
    if ttl.to_milliseconds() <= 0:
        raise ValueError(f"A time to live must be at least one millisecond, but it is {ttl}")
    return ttl


class _Builder:
    """Collects the settings of a StateTtlConfig. Each setter returns the builder."""

    def __init__(self, ttl: Time) -> None:
        self._ttl = _positive(ttl)
        self._update_type = _UpdateType.OnCreateAndWrite
        self._state_visibility = _StateVisibility.NeverReturnExpired
        self._time_characteristic = _TtlTimeCharacteristic.ProcessingTime
        self._cleanup_in_background = True
        self._strategies: dict[_Strategies, _CleanupStrategy] = {}

    def set_update_type(self, update_type: _UpdateType) -> _Builder:
        """Set the accesses that prolong the life of a value.

        Args:
            update_type: ``Disabled``, ``OnCreateAndWrite`` or ``OnReadAndWrite``.
        """
        self._update_type = update_type
        return self

    def update_ttl_on_create_and_write(self) -> _Builder:
        """Prolong the life of a value when it is written. This is the default."""
        return self.set_update_type(_UpdateType.OnCreateAndWrite)

    def update_ttl_on_read_and_write(self) -> _Builder:
        """Prolong the life of a value when it is read or written."""
        return self.set_update_type(_UpdateType.OnReadAndWrite)

    def set_state_visibility(self, state_visibility: _StateVisibility) -> _Builder:
        """Set the visibility of expired values.

        Args:
            state_visibility: ``NeverReturnExpired`` or ``ReturnExpiredIfNotCleanedUp``.
        """
        self._state_visibility = state_visibility
        return self

    def return_expired_if_not_cleaned_up(self) -> _Builder:
        """Return expired values as long as they are stored."""
        return self.set_state_visibility(_StateVisibility.ReturnExpiredIfNotCleanedUp)

    def never_return_expired(self) -> _Builder:
        """Never return expired values. This is the default."""
        return self.set_state_visibility(_StateVisibility.NeverReturnExpired)

    def set_ttl_time_characteristic(
        self, ttl_time_characteristic: _TtlTimeCharacteristic
    ) -> _Builder:
        """Set the clock. There is only processing time.

        Args:
            ttl_time_characteristic: ``ProcessingTime``.
        """
        self._time_characteristic = ttl_time_characteristic
        return self

    def use_processing_time(self) -> _Builder:
        """Let the processing time decide. This is the default."""
        return self.set_ttl_time_characteristic(_TtlTimeCharacteristic.ProcessingTime)

    def cleanup_full_snapshot(self) -> _Builder:
        """Leave expired values out of snapshots."""
        self._strategies[_Strategies.FULL_STATE_SCAN_SNAPSHOT] = _EmptyCleanupStrategy()
        return self

    def cleanup_incrementally(
        self, cleanup_size: int, run_cleanup_for_every_record: bool
    ) -> _Builder:
        """Check a few entries at each access of state.

        Args:
            cleanup_size: The number of entries.
            run_cleanup_for_every_record: Check entries at each record, too.
        """
        if type(cleanup_size) is not int or cleanup_size < 0:
            raise ValueError(
                "cleanup_incrementally: cleanup_size, the number of entries to check, must be an "
                f"int of at least 0, but it is {cleanup_size!r}"
            )
        self._strategies[_Strategies.INCREMENTAL_CLEANUP] = _IncrementalCleanupStrategy(
            cleanup_size, run_cleanup_for_every_record
        )
        return self

    def cleanup_in_rocksdb_compact_filter(
        self,
        query_time_after_num_entries: int,
        periodic_compaction_time: Duration | None = None,
    ) -> _Builder:
        """Drop expired values while RocksDB compacts its files.

        Args:
            query_time_after_num_entries: Read the clock again after this many entries.
            periodic_compaction_time: Compact files of this age again. The default is 30 days.
        """
        self._strategies[_Strategies.ROCKSDB_COMPACTION_FILTER] = (
            _RocksdbCompactFilterCleanupStrategy(
                query_time_after_num_entries, periodic_compaction_time or _DEFAULT_COMPACTION_TIME
            )
        )
        return self

    def disable_cleanup_in_background(self) -> _Builder:
        """Turn the default cleanup off. The ways that were chosen stay."""
        self._cleanup_in_background = False
        return self

    def build(self) -> StateTtlConfig:
        """Return the settings."""
        return StateTtlConfig(
            self._update_type,
            self._state_visibility,
            self._time_characteristic,
            self._ttl,
            _CleanupStrategies(dict(self._strategies), self._cleanup_in_background),
        )


@dataclass(frozen=True)
class StateTtlConfig:
    """The time to live of a state, the accesses that prolong it, and the cleanup.

    >>> config = (
    ...     StateTtlConfig.new_builder(Time.hours(1))
    ...     .update_ttl_on_create_and_write()
    ...     .update_ttl_on_read_and_write()
    ...     .never_return_expired()
    ...     .use_processing_time()
    ...     .cleanup_full_snapshot()
    ...     .cleanup_incrementally(10, run_cleanup_for_every_record=False)
    ...     .build()
    ... )
    >>> config.get_update_type().name, config.get_state_visibility().name
    ('OnReadAndWrite', 'NeverReturnExpired')
    >>> config.get_ttl(), config.get_ttl_time_characteristic().name, config.is_enabled()
    (Time(3600000), 'ProcessingTime', True)
    >>> strategies = config.get_cleanup_strategies()
    >>> strategies.in_full_snapshot(), strategies.is_cleanup_in_background()
    (True, True)
    >>> strategies.get_incremental_cleanup_strategy().get_cleanup_size()
    10
    >>> strategies.get_incremental_cleanup_strategy().run_cleanup_for_every_record()
    False

    The same with the general setters, and RocksDB:

    >>> config = (
    ...     StateTtlConfig.new_builder(Time.hours(1))
    ...     .set_update_type(StateTtlConfig.UpdateType.OnReadAndWrite)
    ...     .set_state_visibility(StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp)
    ...     .return_expired_if_not_cleaned_up()
    ...     .set_ttl_time_characteristic(StateTtlConfig.TtlTimeCharacteristic.ProcessingTime)
    ...     .cleanup_in_rocksdb_compact_filter(1000)
    ...     .disable_cleanup_in_background()
    ...     .build()
    ... )
    >>> strategy = config.get_cleanup_strategies().get_rocksdb_compact_filter_cleanup_strategy()
    >>> strategy.get_query_time_after_num_entries(), strategy.get_periodic_compaction_time()
    (1000, Duration.of_millis(2592000000))
    """

    update_type: _UpdateType
    state_visibility: _StateVisibility
    ttl_time_characteristic: _TtlTimeCharacteristic
    ttl: Time
    cleanup_strategies: _CleanupStrategies

    UpdateType = _UpdateType
    StateVisibility = _StateVisibility
    TtlTimeCharacteristic = _TtlTimeCharacteristic
    CleanupStrategies = _CleanupStrategies
    Builder = _Builder

    @staticmethod
    def new_builder(ttl: Time) -> _Builder:
        """Return a builder.

        Args:
            ttl: The time after which a value expires: a Time, or a Duration as in Flink's Java API.

        Raises:
            ValueError: The time is less than a millisecond.
        """
        return _Builder(ttl)

    def get_update_type(self) -> _UpdateType:
        """Return the accesses that prolong the life of a value."""
        return self.update_type

    def get_state_visibility(self) -> _StateVisibility:
        """Return the visibility of expired values."""
        return self.state_visibility

    def get_ttl(self) -> Time:
        """Return the time after which a value expires."""
        return self.ttl

    def get_ttl_time_characteristic(self) -> _TtlTimeCharacteristic:
        """Return the clock, which is processing time."""
        return self.ttl_time_characteristic

    def is_enabled(self) -> bool:
        """Return False if the update type is ``Disabled``."""
        return self.update_type is not _UpdateType.Disabled

    def get_cleanup_strategies(self) -> _CleanupStrategies:
        """Return the ways to remove expired values."""
        return self.cleanup_strategies
