"""join_on: joins two streams by key without a window, as a database joins two changing tables.

The result is a stream of changes. Added up, it is the result of a database for all rows that have
arrived, in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import repeat
from typing import Any

from firesteel.common.types import (
    Row,
    RowKind,
    copy_row,
    field_names_of,
    new_row,
    row_kind_of,
)
from firesteel.datastream.state import StateTtlConfig
from firesteel.graph.operator_specs import JoinSpec
from firesteel.state.key_encoding import encode_entry
from firesteel.state.tables import MISSING, MapTable
from firesteel.task.copies import copy_of
from firesteel.task.operators.base import FunctionOperator, OperatorContext
from firesteel.task.record_batch import RecordBatch
from firesteel.task.state.ttl import TtlMapTable, TtlRule, clean_up
from firesteel.usercode import pickling
from firesteel.usercode.failures import USER_ERRORS, failed_function

# No record of a user begins with one of these.
_LIST, _DICT, _SET, _TUPLE, _ROW, _OBJECT = (
    f"\0{name}" for name in ("list", "dict", "set", "tuple", "row", "object")
)


class Frozen(tuple[Any, ...]):
    """A record without a hash, as a hashable tuple of its kind and its contents."""

    __slots__ = ()


def entry_of(record: Any) -> Any:
    """Return the entry of a record. Equal records have equal entries, ignoring row kinds."""
    if type(record) is Row:
        record = copy_row(record, _INSERT)
    try:
        hash(record)
    except TypeError:
        return _freeze(record)
    return record


def record_of(entry: Any) -> Any:
    """Return the record of an entry, as a copy that may be changed."""
    return _thaw(entry) if type(entry) is Frozen else copy_of(entry)


def _freeze(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        return Frozen(_parts(value))
    return value


def _parts(value: Any) -> tuple[Any, ...]:
    kind = type(value)
    if kind is list:
        return _LIST, *map(_freeze, value)
    if kind is tuple:
        return _TUPLE, *map(_freeze, value)
    if kind is dict:
        # The order of a dictionary does not matter for equality.
        pairs = sorted(value.items(), key=lambda pair: encode_entry(pair[0]))
        return _DICT, *((name, _freeze(content)) for name, content in pairs)
    if kind is set:
        return _SET, *sorted(value, key=encode_entry)
    if kind is Row:
        fields = field_names_of(value)
        names = None if fields is None else tuple(fields)
        return _ROW, names, *map(_freeze, value)
    return _OBJECT, pickling.dumps(value)


def _thaw(entry: Any) -> Any:
    if type(entry) is not Frozen:
        return copy_of(entry)
    kind, *parts = entry
    if kind == _LIST:
        return list(map(_thaw, parts))
    if kind == _TUPLE:
        return tuple(map(_thaw, parts))
    if kind == _DICT:
        return {copy_of(name): _thaw(content) for name, content in parts}
    if kind == _SET:
        return set(map(copy_of, parts))
    if kind == _ROW:
        names, *fields = parts
        return new_row(list(map(_thaw, fields)), None if names is None else list(names))
    return pickling.loads(parts[0])


class JoinSide:
    """The rows of one side, by key.

    outer: rows without a match are part of the result.
    counts: the matches of each row are counted. This is not needed if all rows of a key match each
        other: then a row has a match if the other side has any row.
    """

    def __init__(
        self,
        context: OperatorContext,
        name: str,
        *,
        outer: bool,
        counts: bool,
        ttl: StateTtlConfig | None,
    ) -> None:
        self.outer = outer
        self.counts = counts
        table = context.keyed_state.map_table(name, ttl=ttl is not None)
        self._table: MapTable | TtlMapTable = table
        # Adds a row whose matches are not counted.
        self.count_up: Callable[[Any, Any], None] = table.count_up
        # Replaces the value of an entry without renewing its time to live.
        self._amend: Callable[[Any, Any, Any], None] = table.put
        self.rows: Callable[[Any], Mapping[Any, Any]] = table.view
        """The entries of a key. They are valid until rows are added or removed."""
        if ttl is not None:
            rule = TtlRule(ttl, context.clock)
            expiring = self._table = TtlMapTable(table, rule)
            clean_up(ttl, context.keyed_state, table, expiring, rule, context.key_context)
            self.rows = lambda key: dict(expiring.entries(key))
            self.count_up = self._count_up
            self._amend = expiring.amend

    def add(self, key: Any, row: Any, matches: int) -> None:
        """Add one more of this row, which has this number of matches."""
        if not self.counts:
            self.count_up(key, row)
            return
        known = self._table.get(key, row)
        self._table.put(key, row, (1 if known is MISSING else known[0] + 1, matches))

    def _count_up(self, key: Any, row: Any) -> None:
        known = self._table.get(key, row)
        self._table.put(key, row, 1 if known is MISSING else known + 1)

    def remove(self, key: Any, row: Any) -> int | None:
        """Remove one of this row. Returns its matches (-1 if not counted), or None if absent."""
        table = self._table
        known = table.get(key, row)
        if known is MISSING:
            return None
        times, matches = known if self.counts else (known, -1)
        if times == 1:
            table.remove_entry(key, row)
        else:
            self._amend(key, row, (times - 1, matches) if self.counts else times - 1)
        found: int = matches
        return found

    def set_matches(self, key: Any, row: Any, times: int, matches: int) -> None:
        self._amend(key, row, (times, matches))

    def has_rows(self, key: Any) -> bool:
        return self._table.contains(key)


_INSERT, _DELETE = RowKind.INSERT, RowKind.DELETE
_BEFORE, _AFTER = RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER

Add = Callable[[Any, Any, RowKind], None]
"""Adds a result: (a row of this side, a row of the other side, row kind)."""


Records = Iterable[tuple[Any, Any, int | None]]
"""Records as (value, key, timestamp)."""

# They cannot be changed in place, and they are only inserted.
_TYPES_OF_PLAIN_RECORDS = frozenset({bool, bytes, float, int, str, tuple, type(None)})


class JoinOperator(FunctionOperator):
    def __init__(self, spec: JoinSpec, context: OperatorContext) -> None:
        super().__init__(context, spec.function)
        self._make = None if spec.function is None else self.method("join")
        self._predicate = spec.predicate
        counts = spec.predicate is not None or spec.ttl is not None
        self._sides = [
            JoinSide(context, name, outer=outer, counts=outer and counts, ttl=spec.ttl)
            for name, outer in (("join/left", spec.left_outer), ("join/right", spec.right_outer))
        ]

        # A join without a predicate or time to live.
        self._is_plain = not counts

    def process(self, batch: RecordBatch) -> None:
        self._join(0, batch)

    def process_second(self, batch: RecordBatch) -> None:
        self._join(1, batch)

    def _join(self, side: int, batch: RecordBatch) -> None:
        values, keys, timestamps = batch.values, batch.keys, batch.timestamps
        assert keys is not None
        results: list[Any] = []
        stamps: list[int] = []
        iterator = iter(values)
        times: Iterable[Any] = repeat(None) if timestamps is None else timestamps
        plain = self._is_plain and _TYPES_OF_PLAIN_RECORDS.issuperset(map(type, values))
        join = self._join_plain if plain else self._join_changes
        try:
            join(side, zip(iterator, keys, times, strict=False), keys, results, stamps)
        except USER_ERRORS as error:
            functions = [f for f in (self._predicate, self._make) if f is not None]
            failed = failed_function(error, *functions) if functions else self.process
            raise self.failure(error, failed, values, iterator) from error
        if results:
            self.output.emit(RecordBatch(results, stamps or None))

    def _join_plain(
        self, side: int, records: Records, keys: list[Any], results: list[Any], stamps: list[int]
    ) -> None:
        """Join immutable records that are only inserted, which is faster."""
        own, other = self._sides[side], self._sides[1 - side]
        rows, count_up, has_rows = other.rows, own.count_up, own.has_rows
        own_outer, other_outer = own.outer, other.outer
        key_context, add = self.context.key_context, self._adder(side, results)
        append, is_left = None if self._make is not None else results.append, side == 0
        nulls = _may_have_nulls(keys)
        for value, key, time in records:
            key_context.key = key
            row = entry_of(value)
            found = None
            # A null key matches nothing, so the row need not be kept.
            if not nulls or not _is_null(key):
                found = rows(key)
                # The first row of a key replaces the results of the other side without a match.
                is_first = other_outer and bool(found) and not has_rows(key)
                count_up(key, row)
            if not found:
                if not own_outer:
                    continue
                if append is None:
                    add(row, None, _INSERT)
                else:
                    append(new_row([value, None] if is_left else [None, value], None))
            else:
                for match, count in found.items():
                    if append is None or count > 1 or type(match) not in _TYPES_OF_PLAIN_RECORDS:
                        _add_first(add, row, match, count, was_alone=is_first)
                        continue
                    pair = [value, match] if is_left else [match, value]
                    if is_first:
                        alone = [None, match] if is_left else [match, None]
                        append(new_row(alone, None, _BEFORE))
                        append(new_row(pair, None, _AFTER))
                    else:
                        append(new_row(pair, None))
            if time is not None:
                stamps += [time] * (len(results) - len(stamps))

    def _join_changes(
        self, side: int, records: Records, keys: list[Any], results: list[Any], stamps: list[int]
    ) -> None:
        insert, delete, key_context = self._insert, self._delete, self.context.key_context
        add = self._adder(side, results)
        outer = self._sides[side].outer
        nulls = _may_have_nulls(keys)
        for value, key, time in records:
            key_context.key = key
            is_delete = type(value) is Row and row_kind_of(value) in (_BEFORE, _DELETE)
            row = entry_of(value)
            if nulls and _is_null(key):
                # A null key matches nothing, so the row need not be kept.
                if outer:
                    add(row, None, _DELETE if is_delete else _INSERT)
            elif is_delete:
                delete(side, key, row, add)
            else:
                insert(side, key, row, add)
            if time is not None:
                stamps += [time] * (len(results) - len(stamps))

    def _insert(self, side: int, key: Any, row: Any, add: Add) -> None:
        own, other = self._sides[side], self._sides[1 - side]
        found = self._found(side, key, row)
        if not found:
            if own.outer:
                add(row, None, _INSERT)
            own.add(key, row, 0)
            return
        joined = 0
        if not other.outer:
            for match, count in found.items():
                joined += count
                for _ in range(count):
                    add(row, match, _INSERT)
        elif other.counts:
            for match, (count, matches) in found.items():
                joined += count
                other.set_matches(key, match, count, matches + 1)
                _add_first(add, row, match, count, was_alone=matches == 0)
        else:
            was_alone = not own.has_rows(key)
            for match, count in found.items():
                joined += count
                _add_first(add, row, match, count, was_alone=was_alone)
        own.add(key, row, joined)

    def _delete(self, side: int, key: Any, row: Any, add: Add) -> None:
        own, other = self._sides[side], self._sides[1 - side]
        own_matches = own.remove(key, row)
        if own_matches is None:
            # It never arrived or has expired, so no result of it is known.
            return
        found = self._found(side, key, row)
        if own.outer and (own_matches == 0 if own.counts else not found):
            add(row, None, _DELETE)
        if not found:
            return
        if not other.outer:
            for match, count in found.items():
                for _ in range(count):
                    add(row, match, _DELETE)
        elif other.counts:
            for match, (count, matches) in found.items():
                other.set_matches(key, match, count, max(0, matches - 1))
                _add_last(add, row, match, count, is_alone=matches == 1)
        else:
            is_alone = not own.has_rows(key)
            for match, count in found.items():
                _add_last(add, row, match, count, is_alone=is_alone)

    def _found(self, side: int, key: Any, row: Any) -> Any:
        """The rows of the other side that match this one."""
        found = self._sides[1 - side].rows(key)
        test = self._predicate
        if test is None or not found:
            return found
        record = record_of(row)
        if side == 0:
            return {
                other: value for other, value in found.items() if test(record, record_of(other))
            }
        return {other: value for other, value in found.items() if test(record_of(other), record)}

    def _adder(self, side: int, results: list[Any]) -> Add:
        append, make = results.append, self._make

        def add(row: Any, other: Any, kind: RowKind) -> None:
            left, right = (row, other) if side == 0 else (other, row)
            append(new_row([record_of(left), record_of(right)], None, kind))

        def add_made(row: Any, other: Any, kind: RowKind) -> None:
            assert make is not None
            left, right = (row, other) if side == 0 else (other, row)
            append(_as_row(make(record_of(left), record_of(right)), kind))

        return add if make is None else add_made


def _add_first(add: Add, row: Any, match: Any, count: int, *, was_alone: bool) -> None:
    """Join ``match`` with a row. If it was alone, this replaces its result without a match."""
    for _ in range(count):
        if was_alone:
            add(None, match, _BEFORE)
            add(row, match, _AFTER)
        else:
            add(row, match, _INSERT)


def _add_last(add: Add, row: Any, match: Any, count: int, *, is_alone: bool) -> None:
    """Separate ``match`` from a row. If it is alone then, its result without a match returns."""
    for _ in range(count):
        if is_alone:
            add(row, match, _BEFORE)
            add(None, match, _AFTER)
        else:
            add(row, match, _DELETE)


def _as_row(result: Any, kind: RowKind) -> Row:
    """Make a row of the fields of a Row or tuple, or of one field otherwise."""
    if isinstance(result, Row):
        return copy_row(result, kind)
    if isinstance(result, tuple):
        return new_row(list(result), None, kind)
    return new_row([result], None, kind)


def _may_have_nulls(keys: list[Any]) -> bool:
    return any(issubclass(kind, tuple | Row | type(None)) for kind in frozenset(map(type, keys)))


def _is_null(key: Any) -> bool:
    """True for a key with a NULL in it. As in SQL, it equals no key, not even itself."""
    if key is None:
        return True
    if isinstance(key, tuple):
        return any(field is None for field in key)
    return isinstance(key, Row) and any(field is None for field in key)
