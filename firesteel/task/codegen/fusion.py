"""Fusing: neighbors of a chain that work record by record share one loop.

Operators work on batches, which costs a list and a pass over it for each of them. Where an
operator says what it does with a single record (its ``Step``), the operators chained to it that do
too are written into the same loop, as a person would write it: ``x = make(n)``, ``if keep(x):``,
``invoke(x, context)``. The source of that loop is generated when its first batch comes: most
operators in the middle of a chain are only entered as a part of another's loop.

A rolling reduction can begin a loop: it finds what its key has, combines, and hands the result on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from firesteel.state.tables import MISSING
from firesteel.task.codegen.expressions import defined
from firesteel.task.exchange.keys import KeySelection
from firesteel.usercode.failures import USER_ERRORS

Emit = Callable[[list[Any], list[int] | None], None]

# A loop costs its compilation, and an operator that two ways lead to is in it twice. What is saved by
# one more operator in it does not depend on how many are there already.
_MAX_NODES = 48
# Each one indents what comes behind it, and Python's parser has its limits.
_MAX_NESTED_FILTERS = 15
# What stands for a file in the traceback of a loop.
_LOOP = "<fused chain>"


class StepKind(Enum):
    MAP = "map"
    FILTER = "filter"
    INVOKE = "invoke"
    # These two begin a loop, and are in no other.
    REDUCE = "reduce"
    # reduce for what sum is mostly used on, (key, count), with the addition written in.
    SUM_OF_PAIRS = "sum of pairs"

    @property
    def begins_loops(self) -> bool:
        return self in _COMBINE


# How what a key has and a record become a result.
_COMBINE = {
    StepKind.REDUCE: ("result = function0(kept, record)",),
    StepKind.SUM_OF_PAIRS: (
        "try:",
        "    first, total = kept",
        "except ValueError:",  # not a pair, as the first record was
        "    result = function0(kept, record)",
        "else:",
        "    result = (first, total + record[1])",
    ),
}


@dataclass(frozen=True, slots=True)
class Step:
    """What an operator does with one record.

    ``context`` of INVOKE is the function's second argument; its ``element_timestamp`` is set
    before each call. ``explain`` turns an exception and the record into the error to raise.
    """

    kind: StepKind
    function: Callable[..., Any]
    explain: Callable[[BaseException, Any], Exception]
    context: Any = None


@dataclass(slots=True)
class FusedNode:
    """An operator of a loop. ``emit`` takes its results as batches, for whoever is not in the loop."""

    step: Step
    children: list[FusedNode] = field(default_factory=list)
    emit: Emit | None = None
    # Told how many records of a batch came to this operator, where somebody counts them.
    count: Callable[[int], None] | None = None
    # Of the tree below and with this operator.
    size: int = field(init=False)
    nested_filters: int = field(init=False)

    def __post_init__(self) -> None:
        is_filter = self.step.kind is StepKind.FILTER
        self.size = 1 + sum(child.size for child in self.children)
        self.nested_filters = is_filter + max((c.nested_filters for c in self.children), default=0)

    def adopt(self, child: FusedNode) -> bool:
        """Take another tree into the loop, unless that becomes too large."""
        if child.step.kind.begins_loops:
            return False
        filters = child.nested_filters + (self.step.kind is StepKind.FILTER)
        if self.size + child.size > _MAX_NODES or filters > _MAX_NESTED_FILTERS:
            return False
        self.children.append(child)
        self.size += child.size
        self.nested_filters = max(self.nested_filters, filters)
        return True

    def copy(self) -> FusedNode:
        """The same operators once more: a loop that comes to them twice tells the ways apart."""
        return replace(self, children=[child.copy() for child in self.children])

    def walk(self) -> Iterator[FusedNode]:
        yield self
        for child in self.children:
            yield from child.walk()


def fuse(root: FusedNode) -> Emit:
    """One function that does the work of the whole tree for a batch."""
    plain: Emit | None = None
    stamped: Emit | None = None

    def process(values: list[Any], timestamps: list[int] | None) -> None:
        nonlocal plain, stamped
        if timestamps is None:
            if plain is None:
                plain = _Loop(root, stamped=False).compile()
            plain(values, None)
        else:
            if stamped is None:
                stamped = _Loop(root, stamped=True).compile()
            stamped(values, timestamps)

    return process


class KeyedLoop:
    """The loop that a rolling reduction begins."""

    def __init__(self, root: FusedNode) -> None:
        self._root = root
        # With timestamps or without, with the keys or with what selects them.
        self._loops: dict[tuple[bool, KeySelection | None], Callable[..., None]] = {}

    def process(
        self,
        values: list[Any],
        keys: list[Any] | None,
        timestamps: list[int] | None,
        overlay: dict[Any, Any],
        in_base: Callable[[Any, Any], Any],
        select: KeySelection | None,
    ) -> None:
        """``keys``, or ``select`` that finds them in the records. What keys have is in ``overlay``, else in the base."""
        kind = timestamps is not None, select if keys is None else None
        loop = self._loops.get(kind)
        if loop is None:
            loop = self._loops[kind] = _KeyedLoop(self._root, kind[1], stamped=kind[0]).compile()
        loop(values, keys, timestamps, overlay, in_base)


class _Loop:
    """Writes and compiles the loop over a tree, for records with timestamps or without."""

    parameters = "values, timestamps"

    def __init__(self, root: FusedNode, *, stamped: bool) -> None:
        self._root = root
        self._stamped = stamped
        self._names: dict[str, Any] = {
            "__name__": __name__,
            "_explain": self._explain,
            "_USER_ERRORS": USER_ERRORS,
        }
        self._lines: list[str] = []
        # What stands in a line, and which variable holds its record.
        self._steps_by_line: dict[int, tuple[Step | KeySelection, str]] = {}
        self._numbers = {id(node): number for number, node in enumerate(root.walk())}
        # The lines behind the loop that tell the counts.
        self._counts: list[str] = []

    def compile(self) -> Callable[..., None]:
        add = self._add
        nodes = list(self._root.walk())
        add(0, f"def process({self.parameters}):")
        # What a loop calls is a local of its function: globals cost a lookup each.
        for number, node in enumerate(nodes):
            self._names[f"_function{number}"] = node.step.function
            self._names[f"_context{number}"] = node.step.context
            self._names[f"_emit{number}"] = node.emit
            add(1, f"function{number} = _function{number}")
            if node.step.kind is StepKind.INVOKE:
                add(1, f"context{number} = _context{number}")
                if not self._stamped:
                    add(1, f"context{number}.element_timestamp = None")
            if node.emit is not None:
                add(1, f"results{number} = []; append{number} = results{number}.append")
                if self._stamped:
                    add(1, f"stamps{number} = []; stamp{number} = stamps{number}.append")
            if node.count is not None:
                self._names[f"_count{number}"] = node.count
                add(1, f"seen{number} = 0")
        self._write_loop()
        add(1, "except _USER_ERRORS as error:")
        add(2, "raise _explain(error) from error")
        for number, node in enumerate(nodes):
            if node.emit is not None:
                stamps = f"stamps{number}" if self._stamped else "None"
                add(1, f"if results{number}: _emit{number}(results{number}, {stamps})")
        for line in self._counts:
            add(1, line)
        return defined("\n".join(self._lines), "process", _LOOP, self._names)

    def _write_loop(self) -> None:
        self._add(1, "try:")
        if self._stamped:
            self._add(2, "for record, timestamp in zip(values, timestamps):")
        else:
            self._add(2, "for record in values:")
        self._write(self._root, "record", 3, filtered=False)

    def _write(self, node: FusedNode, record: str, depth: int, *, filtered: bool) -> None:
        number = self._numbers[id(node)]
        step = node.step
        if node.count is not None:
            # Without a filter before it, every record of the batch comes to the operator.
            if filtered:
                self._add(depth, f"seen{number} += 1")
            seen = f"seen{number}" if filtered else "len(values)"
            self._counts.append(f"_count{number}({seen})")
        result = record
        match step.kind:
            case StepKind.MAP:
                result = f"record{number}"
                self._add(depth, f"{result} = function{number}({record})")
            case StepKind.FILTER:
                self._add(depth, f"if function{number}({record}):")
                depth += 1
            case StepKind.INVOKE:
                if self._stamped:
                    self._add(depth, f"context{number}.element_timestamp = timestamp")
                self._add(depth, f"function{number}({record}, context{number})")
        self._steps_by_line[len(self._lines)] = (step, record)
        if node.emit is not None:
            self._write_append(number, result, depth)
        elif step.kind is StepKind.FILTER and not node.children:
            self._add(depth, "pass")
        filtered = filtered or step.kind is StepKind.FILTER
        for child in node.children:
            self._write(child, result, depth, filtered=filtered)

    def _write_append(self, number: int, result: str, depth: int) -> None:
        self._add(depth, f"append{number}({result})")
        if self._stamped:
            self._add(depth, f"stamp{number}(timestamp)")

    def _add(self, depth: int, line: str) -> None:
        self._lines.append("    " * depth + line)

    def _explain(self, error: BaseException) -> BaseException:
        """The line that failed tells the operator, and the loop's variable the record."""
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == _LOOP:
                found = self._steps_by_line.get(trace.tb_lineno)
                if found is not None:
                    step, record = found
                    return step.explain(error, trace.tb_frame.f_locals[record])
            trace = trace.tb_next
        return error


class _KeyedLoop(_Loop):
    """The loop behind a rolling reduction. Without ``select`` the keys come along."""

    parameters = "values, keys, timestamps, overlay, in_base"

    def __init__(self, root: FusedNode, select: KeySelection | None, *, stamped: bool) -> None:
        super().__init__(root, stamped=stamped)
        self._select = select

    def _write_loop(self) -> None:
        add, root, select = self._add, self._root, self._select
        columns = {"record": "values"}
        if select is None:
            columns["key"] = "keys"
        if self._stamped:
            columns["timestamp"] = "timestamps"
        self._names["_missing"] = MISSING
        add(1, "find, missing = overlay.get, _missing")
        add(1, "try:")
        if len(columns) == 1:
            add(2, "for record in values:")
        else:
            add(2, f"for {', '.join(columns)} in zip({', '.join(columns.values())}):")
        if select is not None:
            add(3, f"key = {select.expression('record')}")
            self._steps_by_line[len(self._lines)] = (select, "record")
        first = len(self._lines) + 1
        add(3, "kept = find(key, missing)")
        add(3, "if kept is missing: kept = in_base(key, missing)")
        add(3, "if kept is missing: result = record")
        add(3, "else:")
        for line in _COMBINE[root.step.kind]:
            add(4, line)
        add(3, "overlay[key] = result")
        for number in range(first, len(self._lines) + 1):
            self._steps_by_line[number] = (root.step, "record")
        if root.emit is not None:
            self._write_append(0, "result", 3)
        for child in root.children:
            self._write(child, "result", 3, filtered=False)
