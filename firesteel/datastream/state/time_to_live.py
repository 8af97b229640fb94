"""How long state lives: plain data, which the backends obey."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from firesteel.common.time import Duration, Time

_DEFAULT_COMPACTION_TIME = Duration.of_days(30)


class _UpdateType(Enum):
    Disabled = 0
    OnCreateAndWrite = 1
    OnReadAndWrite = 2


class _StateVisibility(Enum):
    ReturnExpiredIfNotCleanedUp = 0
    NeverReturnExpired = 1


class _TtlTimeCharacteristic(Enum):
    ProcessingTime = 0


class _Strategies(Enum):
    FULL_STATE_SCAN_SNAPSHOT = 0
    INCREMENTAL_CLEANUP = 1
    ROCKSDB_COMPACTION_FILTER = 2


class _CleanupStrategy:
    """Base of the ways to get rid of expired values."""


@dataclass(frozen=True)
class _EmptyCleanupStrategy(_CleanupStrategy):
    """A way that needs no parameters."""


@dataclass(frozen=True)
class _IncrementalCleanupStrategy(_CleanupStrategy):
    """Looks at a few entries with every access, and with every record if told to."""

    cleanup_size: int
    for_every_record: bool

    def get_cleanup_size(self) -> int:
        return self.cleanup_size

    def run_cleanup_for_every_record(self) -> bool:
        return self.for_every_record


@dataclass(frozen=True)
class _RocksdbCompactFilterCleanupStrategy(_CleanupStrategy):
    """Drops expired entries while RocksDB compacts its files."""

    query_time_after_num_entries: int
    periodic_compaction_time: Duration = _DEFAULT_COMPACTION_TIME

    def get_query_time_after_num_entries(self) -> int:
        return self.query_time_after_num_entries

    def get_periodic_compaction_time(self) -> Duration:
        return self.periodic_compaction_time


@dataclass(frozen=True)
class _CleanupStrategies:
    """Which ways of cleaning up were asked for."""

    strategies: Mapping[_Strategies, _CleanupStrategy] = field(default_factory=dict)
    cleanup_in_background: bool = True

    Strategies = _Strategies
    CleanupStrategy = _CleanupStrategy
    EmptyCleanupStrategy = _EmptyCleanupStrategy
    IncrementalCleanupStrategy = _IncrementalCleanupStrategy
    RocksdbCompactFilterCleanupStrategy = _RocksdbCompactFilterCleanupStrategy

    def is_cleanup_in_background(self) -> bool:
        return self.cleanup_in_background

    def in_full_snapshot(self) -> bool:
        return _Strategies.FULL_STATE_SCAN_SNAPSHOT in self.strategies

    def get_incremental_cleanup_strategy(self) -> _IncrementalCleanupStrategy | None:
        chosen = self.strategies.get(_Strategies.INCREMENTAL_CLEANUP)
        if isinstance(chosen, _IncrementalCleanupStrategy):
            return chosen
        return _IncrementalCleanupStrategy(5, False) if self.cleanup_in_background else None

    def get_rocksdb_compact_filter_cleanup_strategy(
        self,
    ) -> _RocksdbCompactFilterCleanupStrategy | None:
        chosen = self.strategies.get(_Strategies.ROCKSDB_COMPACTION_FILTER)
        if isinstance(chosen, _RocksdbCompactFilterCleanupStrategy):
            return chosen
        return _RocksdbCompactFilterCleanupStrategy(1000) if self.cleanup_in_background else None


def _positive(ttl: Time | Duration) -> Time:
    """Flink's newer versions have Duration where PyFlink has Time."""
    if isinstance(ttl, Duration):
        ttl = Time.milliseconds(ttl.to_millis())
    if not isinstance(ttl, Time):
        raise TypeError(
            f"A time to live is a Time such as Time.hours(1), or a Duration, but it is {ttl!r}"
        )
    if ttl.to_milliseconds() <= 0:
        raise ValueError(f"A time to live must be at least one millisecond, but it is {ttl}")
    return ttl


class _Builder:
    """Collects the settings of a StateTtlConfig."""

    def __init__(self, ttl: Time) -> None:
        self._ttl = _positive(ttl)
        self._update_type = _UpdateType.OnCreateAndWrite
        self._state_visibility = _StateVisibility.NeverReturnExpired
        self._time_characteristic = _TtlTimeCharacteristic.ProcessingTime
        self._cleanup_in_background = True
        self._strategies: dict[_Strategies, _CleanupStrategy] = {}

    def set_update_type(self, update_type: _UpdateType) -> _Builder:
        self._update_type = update_type
        return self

    def update_ttl_on_create_and_write(self) -> _Builder:
        return self.set_update_type(_UpdateType.OnCreateAndWrite)

    def update_ttl_on_read_and_write(self) -> _Builder:
        return self.set_update_type(_UpdateType.OnReadAndWrite)

    def set_state_visibility(self, state_visibility: _StateVisibility) -> _Builder:
        self._state_visibility = state_visibility
        return self

    def return_expired_if_not_cleaned_up(self) -> _Builder:
        return self.set_state_visibility(_StateVisibility.ReturnExpiredIfNotCleanedUp)

    def never_return_expired(self) -> _Builder:
        return self.set_state_visibility(_StateVisibility.NeverReturnExpired)

    def set_ttl_time_characteristic(
        self, ttl_time_characteristic: _TtlTimeCharacteristic
    ) -> _Builder:
        self._time_characteristic = ttl_time_characteristic
        return self

    def use_processing_time(self) -> _Builder:
        return self.set_ttl_time_characteristic(_TtlTimeCharacteristic.ProcessingTime)

    def cleanup_full_snapshot(self) -> _Builder:
        self._strategies[_Strategies.FULL_STATE_SCAN_SNAPSHOT] = _EmptyCleanupStrategy()
        return self

    def cleanup_incrementally(
        self, cleanup_size: int, run_cleanup_for_every_record: bool
    ) -> _Builder:
        if type(cleanup_size) is not int or cleanup_size < 0:
            raise ValueError(
                "cleanup_incrementally: the number of entries to look at must be an int that is "
                f"not negative, but it is {cleanup_size!r}"
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
        self._strategies[_Strategies.ROCKSDB_COMPACTION_FILTER] = (
            _RocksdbCompactFilterCleanupStrategy(
                query_time_after_num_entries, periodic_compaction_time or _DEFAULT_COMPACTION_TIME
            )
        )
        return self

    def disable_cleanup_in_background(self) -> _Builder:
        """Leave out the default clean-up; the ways chosen explicitly stay."""
        self._cleanup_in_background = False
        return self

    def build(self) -> StateTtlConfig:
        return StateTtlConfig(
            self._update_type,
            self._state_visibility,
            self._time_characteristic,
            self._ttl,
            _CleanupStrategies(dict(self._strategies), self._cleanup_in_background),
        )


@dataclass(frozen=True)
class StateTtlConfig:
    """When a value expires, and who may still see it.

    >>> config = StateTtlConfig.new_builder(Time.hours(1)).update_ttl_on_read_and_write().build()
    >>> config.get_update_type().name
    'OnReadAndWrite'
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
        """``ttl`` may be a Duration too, as in Flink's Java API."""
        return _Builder(ttl)

    def get_update_type(self) -> _UpdateType:
        return self.update_type

    def get_state_visibility(self) -> _StateVisibility:
        return self.state_visibility

    def get_ttl(self) -> Time:
        return self.ttl

    def get_ttl_time_characteristic(self) -> _TtlTimeCharacteristic:
        return self.ttl_time_characteristic

    def is_enabled(self) -> bool:
        return self.update_type is not _UpdateType.Disabled

    def get_cleanup_strategies(self) -> _CleanupStrategies:
        return self.cleanup_strategies
