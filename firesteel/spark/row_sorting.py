"""Sorts the rows of batch jobs with Spark, which spills to disk."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, lit, when

from firesteel.protocol.row_order import (
    BROADCAST,
    CHANNEL_KINDS,
    FRONT,
    KEYED_ENDS,
    REST,
    RowOrder,
)
from firesteel.protocol.rows import ABORTED, CONTROL, END_OF_EPOCH, HEADER, KEYED


def sort_rows(rows: DataFrame, order: RowOrder) -> DataFrame:
    """Sort the rows of each partition by ``order.place``."""
    kind, edge, payload = col("kind"), col("edge"), col("payload")
    is_front = kind.isin(HEADER, CONTROL) | ((kind == END_OF_EPOCH) & (payload == lit(ABORTED)))
    of_channel = kind.isin(*CHANNEL_KINDS)
    rank = (
        when(kind == KEYED, payload)
        .when(is_front, lit(FRONT))
        .when(of_channel & _is_one_of(edge, order.broadcast), lit(BROADCAST))
        .when(of_channel & _is_one_of(edge, order.keyed), lit(KEYED_ENDS))
        .otherwise(lit(REST))
    )
    return rows.sortWithinPartitions(rank, "edge", "channel", "seq")


def _is_one_of(edge: Column, edges: frozenset[int]) -> Column:
    return edge.isin(*sorted(edges)) if edges else lit(False)
