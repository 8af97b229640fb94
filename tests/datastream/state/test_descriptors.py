from __future__ import annotations

from typing import Any

import pytest

from firesteel.common.time import Duration, Time
from firesteel.common.typeinfo import Types
from firesteel.datastream.functions import AggregateFunction, ReduceFunction
from firesteel.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)


class Sum(ReduceFunction):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return value1 + value2


class Count(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


def test_names_and_types() -> None:
    assert ValueStateDescriptor("v", Types.INT()).get_name() == "v"
    assert ValueStateDescriptor("v", Types.INT()).type_info == Types.INT()
    assert ListStateDescriptor("l", Types.INT()).element_type_info == Types.INT()
    described = MapStateDescriptor("m", Types.STRING(), Types.INT())
    assert (described.key_type_info, described.value_type_info) == (Types.STRING(), Types.INT())
    with pytest.raises(ValueError, match="name"):
        ValueStateDescriptor("", Types.INT())


def test_functions() -> None:
    total, count = Sum(), Count()
    assert ReducingStateDescriptor("r", total, Types.INT()).get_reduce_function() is total
    assert ReducingStateDescriptor("r", max, Types.INT()).get_reduce_function() is max
    assert AggregatingStateDescriptor("a", count, Types.INT()).get_agg_function() is count
    with pytest.raises(TypeError, match="'r' must be a ReduceFunction"):
        ReducingStateDescriptor("r", 5, Types.INT())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="'a' must be an AggregateFunction"):
        AggregatingStateDescriptor("a", max, Types.INT())  # type: ignore[arg-type]


def test_time_to_live_defaults() -> None:
    config = StateTtlConfig.new_builder(Time.seconds(5)).build()
    assert config.get_ttl() == Time.seconds(5)
    assert config.is_enabled()
    assert config.get_update_type() is StateTtlConfig.UpdateType.OnCreateAndWrite
    assert config.get_state_visibility() is StateTtlConfig.StateVisibility.NeverReturnExpired
    assert (
        config.get_ttl_time_characteristic() is StateTtlConfig.TtlTimeCharacteristic.ProcessingTime
    )
    cleanup = config.get_cleanup_strategies()
    assert cleanup.is_cleanup_in_background()
    assert not cleanup.in_full_snapshot()
    incremental = cleanup.get_incremental_cleanup_strategy()
    assert incremental is not None
    assert incremental.get_cleanup_size() == 5
    assert not incremental.run_cleanup_for_every_record()
    compaction = cleanup.get_rocksdb_compact_filter_cleanup_strategy()
    assert compaction is not None
    assert compaction.get_query_time_after_num_entries() == 1000
    assert compaction.get_periodic_compaction_time() == Duration.of_days(30)


def test_time_to_live_chosen() -> None:
    config = (
        StateTtlConfig.new_builder(Time.days(1))
        .update_ttl_on_read_and_write()
        .return_expired_if_not_cleaned_up()
        .use_processing_time()
        .cleanup_full_snapshot()
        .cleanup_incrementally(10, True)
        .disable_cleanup_in_background()
        .build()
    )
    assert config.get_update_type() is StateTtlConfig.UpdateType.OnReadAndWrite
    cleanup = config.get_cleanup_strategies()
    assert cleanup.in_full_snapshot()
    incremental = cleanup.get_incremental_cleanup_strategy()
    assert incremental is not None
    assert incremental.run_cleanup_for_every_record()
    assert cleanup.get_rocksdb_compact_filter_cleanup_strategy() is None
    descriptor = ValueStateDescriptor("v", Types.INT())
    descriptor.enable_time_to_live(config)
    assert descriptor.ttl_config is config


def test_time_to_live_disabled() -> None:
    builder = StateTtlConfig.new_builder(Time.days(1))
    config = builder.set_update_type(StateTtlConfig.UpdateType.Disabled).build()
    assert not config.is_enabled()
