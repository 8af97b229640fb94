"""Fusion of operators: neighbors of a chain that process record by record share one loop.

Operators process batches, which costs each of them a list and a pass over it. An operator that
processes one record at a time describes that in a ``Step``. Firesteel writes the steps of neighbors
into one loop, as a person would: ``x = make(n)``, ``if keep(x):``, ``invoke(x, context)``. It
generates the loop when the first batch comes, because most operators in the middle of a chain are
only entered as a part of a loop that begins before them.

A rolling reduction can begin a loop. The loop finds the value kept for the key, combines it with the
record, and passes the result to the operators after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from firesteel.state.tables import MISSING
from firesteel.task.codegen.compilation import define
from firesteel.task.codegen.key_loops import KeySelection
from firesteel.task.record_batch import Emit, RecordBatch, SentRecords
from firesteel.usercode.failures import USER_ERRORS

# A loop costs its compilation, and an operator that two paths lead to is in it twice. One more
# operator in a loop saves the same, regardless of the number of operators that are in it.
_MAX_NODES = 48
# Each filter indents the lines after it, and Python's parser limits the depth.
_MAX_NESTED_FILTERS = 15
# Calls the function of a reduction. The other way to combine is source of the reduction's own.
CALL_REDUCTION = ("result = function0(kept, record)",)


class StepKind(Enum):
    MAP = "map"
    FILTER = "filter"
    INVOKE = "invoke"
    # A reduction begins a loop. It cannot be inside of one.
    REDUCE = "reduce"


@dataclass(frozen=True, slots=True)
class Step:
    """The work of an operator on one record.

    Args:
        kind: The kind of work.
        function: The function that the loop calls.
        explain: Turns an exception and the record into the error to raise.
        context: The second argument of the function of INVOKE. The loop sets its
            ``element_timestamp`` before each call.
        combine: The statements of REDUCE that set ``result`` from ``kept`` and ``record``. They may
            call the function as ``function0``.
    """

    kind: StepKind
    function: Callable[..., Any]
    explain: Callable[[BaseException, Any], Exception]
    context: Any = None
    combine: tuple[str, ...] = CALL_REDUCTION


@dataclass(slots=True)
class FusedNode:
    """An operator of a loop, with the operators after it.

    Args:
        step: The work of the operator.
        children: The operators after it that are in the same loop.
        emit: Takes its results as batches, for consumers outside of the loop.
        count: Takes the number of records of a batch that reached the operator, for its subtask.
        sent: Counts its results, if the loop knows their number without counting.
    """

    step: Step
    children: list[FusedNode] = field(default_factory=list)
    emit: Emit | None = None
    count: Callable[[int], None] | None = None
    sent: SentRecords | None = None
    # The number of operators in this tree, and its longest way through filters.
    size: int = field(init=False)
    nested_filters: int = field(init=False)

    def __post_init__(self) -> None:
        is_filter = self.step.kind is StepKind.FILTER
        self.size = 1 + sum(child.size for child in self.children)
        self.nested_filters = is_filter + max((c.nested_filters for c in self.children), default=0)

    def adopt(self, child: FusedNode) -> bool:
        """Take a tree into the loop, unless that makes the loop too large."""
        if child.step.kind is StepKind.REDUCE:
            return False
        filters = child.nested_filters + (self.step.kind is StepKind.FILTER)
        if self.size + child.size > _MAX_NODES or filters > _MAX_NESTED_FILTERS:
            return False
        self.children.append(child)
        self.size += child.size
        self.nested_filters = max(self.nested_filters, filters)
        return True

    def copy(self) -> FusedNode:
        """Copy the tree, because a loop that two paths lead through needs a node for each path."""
        return replace(self, children=[child.copy() for child in self.children])

    def walk(self) -> Iterator[FusedNode]:
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(slots=True)
class _Run:
    """Operators between two filters: the same records of a batch reach all of them.

    size: the expression for the number of these records after the loop; None if it is not known.
    """

    size: str | None = None


class _Runs:
    """The records of a loop that reach and leave each operator, by the place of the operator.

    The length of the batch and the lengths of the lists of results cost nothing. A loop counts
    records one by one only where a subtask begins within the loop.
    """

    def __init__(self, root: FusedNode) -> None:
        self.numbers = {id(node): number for number, node in enumerate(root.walk())}
        self.into: dict[int, _Run] = {}
        self.out_of: dict[int, _Run] = {}
        #: The operators that count each record.
        self.counting: set[int] = set()
        self._add(root, _Run("len(values)"))
        for number, node in enumerate(root.walk()):
            run = self.into[number]
            if node.count is not None and run.size is None:
                run.size = f"seen{number}"
                self.counting.add(number)

    def _add(self, node: FusedNode, run: _Run) -> None:
        number = self.numbers[id(node)]
        self.into[number] = run
        if node.step.kind is StepKind.FILTER:
            run = _Run()
        if node.step.kind is StepKind.INVOKE:
            # It has no results.
            return
        self.out_of[number] = run
        if node.emit is not None and run.size is None:
            run.size = f"len(results{number})"
        for child in node.children:
            self._add(child, run)


def without_count(root: FusedNode) -> Iterator[SentRecords]:
    """Yield the counters that the loop of a tree cannot serve."""
    runs = _Runs(root)
    for number, node in enumerate(root.walk()):
        if node.sent is not None and number in runs.out_of and runs.out_of[number].size is None:
            yield node.sent


def fuse(root: FusedNode) -> Emit:
    """Return a function that does the work of the whole tree for a batch."""
    plain: Callable[..., None] | None = None
    stamped: Callable[..., None] | None = None

    def process(batch: RecordBatch) -> None:
        nonlocal plain, stamped
        if batch.timestamps is None:
            if plain is None:
                plain = _Loop(root, stamped=False).compile()
            plain(batch.values, None)
        else:
            if stamped is None:
                stamped = _Loop(root, stamped=True).compile()
            stamped(batch.values, batch.timestamps)

    return process


class KeyedLoop:
    """The loop that begins with a rolling reduction."""

    def __init__(self, root: FusedNode) -> None:
        self._root = root
        # One loop each for batches with and without timestamps, with keys and with a selection of keys.
        self._loops: dict[tuple[bool, KeySelection | None], Callable[..., None]] = {}

    def process(
        self,
        batch: RecordBatch,
        overlay: dict[Any, Any],
        in_base: Callable[[Any, Any], Any],
    ) -> None:
        """Process a batch.

        Args:
            batch: The records. Their keys are sent or computed by the batch's selection.
            overlay: The values of keys that have changed. The results go here.
            in_base: Finds the values of all other keys.
        """
        keys, timestamps = batch.sent_keys, batch.timestamps
        kind = timestamps is not None, batch.selection if keys is None else None
        loop = self._loops.get(kind)
        if loop is None:
            loop = self._loops[kind] = _KeyedLoop(self._root, kind[1], stamped=kind[0]).compile()
        loop(batch.values, keys, timestamps, overlay, in_base)


class _Loop:
    """Writes and compiles the loop over a tree, for records with timestamps or without."""

    title = "fused loop"
    parameters = "values, timestamps"

    def __init__(self, root: FusedNode, *, stamped: bool) -> None:
        self._root = root
        self._stamped = stamped
        self._names: dict[str, Any] = {
            "_explain": self._explain,
            "_USER_ERRORS": USER_ERRORS,
            "_RecordBatch": RecordBatch,
        }
        self._lines: list[str] = []
        # The step that a line belongs to, and the variable that holds its record.
        self._steps_by_line: dict[int, tuple[Step | KeySelection, str]] = {}
        self._runs = _Runs(root)

    def compile(self) -> Callable[..., None]:
        add = self._add
        nodes = list(self._root.walk())
        add(0, f"def {self.title.replace(' ', '_')}({self.parameters}):")
        # The loop calls local variables, because a global costs a lookup each time.
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
            if number in self._runs.counting:
                add(1, f"seen{number} = 0")
        self._write_loop()
        add(1, "except _USER_ERRORS as error:")
        add(2, "raise _explain(error) from error")
        self._write_counts(nodes)
        for number, node in enumerate(nodes):
            if node.emit is not None:
                columns = (
                    f"results{number}, stamps{number}" if self._stamped else f"results{number}"
                )
                add(1, f"if results{number}: _emit{number}(_RecordBatch({columns}))")
        return define("\n".join(self._lines) + "\n", self.title, self._names)

    def _write_loop(self) -> None:
        self._add(1, "try:")
        if self._stamped:
            self._add(2, "for record, timestamp in zip(values, timestamps):")
        else:
            self._add(2, "for record in values:")
        self._write(self._root, "record", 3)

    def _write_counts(self, nodes: list[FusedNode]) -> None:
        """Write the lines after the loop that report the counts."""
        runs = self._runs
        for number, node in enumerate(nodes):
            if node.count is not None:
                self._names[f"_count{number}"] = node.count
                self._add(1, f"_count{number}({runs.into[number].size})")
            sent = runs.out_of.get(number)
            if node.sent is not None and sent is not None and sent.size is not None:
                self._names[f"_sent{number}"] = node.sent
                self._add(1, f"_sent{number}.count += {sent.size}")

    def _write(self, node: FusedNode, record: str, depth: int) -> None:
        number = self._runs.numbers[id(node)]
        step = node.step
        if number in self._runs.counting:
            self._add(depth, f"seen{number} += 1")
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
        for child in node.children:
            self._write(child, result, depth)

    def _write_append(self, number: int, result: str, depth: int) -> None:
        self._add(depth, f"append{number}({result})")
        if self._stamped:
            self._add(depth, f"stamp{number}(timestamp)")

    def _add(self, depth: int, line: str) -> None:
        self._lines.append("    " * depth + line)

    def _explain(self, error: BaseException) -> BaseException:
        """Find the operator by the line that failed, and the record in the loop's variable."""
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_globals is self._names:
                found = self._steps_by_line.get(trace.tb_lineno)
                if found is not None:
                    step, record = found
                    return step.explain(error, trace.tb_frame.f_locals[record])
            trace = trace.tb_next
        return error


class _KeyedLoop(_Loop):
    """Writes the loop that begins with a rolling reduction.

    Args:
        root: The reduction, with the operators after it.
        select: Computes the keys; None if they come with the batch.
        stamped: Whether the records have timestamps.
    """

    title = "keyed loop"
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
            add(3, f"key = {select.expression}")
            self._steps_by_line[len(self._lines)] = (select, "record")
        first = len(self._lines) + 1
        add(3, "kept = find(key, missing)")
        add(3, "if kept is missing: kept = in_base(key, missing)")
        add(3, "if kept is missing: result = record")
        add(3, "else:")
        for line in root.step.combine:
            add(4, line)
        add(3, "overlay[key] = result")
        for number in range(first, len(self._lines) + 1):
            self._steps_by_line[number] = (root.step, "record")
        if root.emit is not None:
            self._write_append(0, "result", 3)
        for child in root.children:
            self._write(child, "result", 3)
