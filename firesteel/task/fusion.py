"""Fusing: neighbors of a chain that work record by record share one loop.

Operators work on batches, which costs a list and a pass over it for each of them. Where an
operator says what it does with a single record (its ``Step``), the operators chained to it that do
too are written into the same loop, as a person would write it: ``x = make(n)``, ``if keep(x):``,
``invoke(x, context)``. The source of that loop is generated when its first batch comes: most
operators in the middle of a chain are only entered as a part of another's loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache
from types import CodeType
from typing import Any

from firesteel.task.errors import USER_ERRORS

Emit = Callable[[list[Any], list[int] | None], None]

# A loop costs its compilation, and an operator that two ways lead to is in it twice. What is saved by
# one more operator in it does not depend on how many are there already.
_MAX_NODES = 48
# Each one indents what comes behind it, and Python's parser has its limits.
_MAX_NESTED_FILTERS = 15


class StepKind(Enum):
    MAP = "map"
    FILTER = "filter"
    INVOKE = "invoke"


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


@lru_cache(maxsize=128)
def _compiled(source: str) -> CodeType:
    """The subtasks of a chain in this process have the same loop around different functions."""
    return compile(source, "<fused chain>", "exec")


class _Loop:
    """Writes and compiles the loop over a tree, for records with timestamps or without."""

    def __init__(self, root: FusedNode, *, stamped: bool) -> None:
        self._root = root
        self._stamped = stamped
        self._names: dict[str, Any] = {
            "__name__": __name__,
            "_explain": self._explain,
            "_USER_ERRORS": USER_ERRORS,
        }
        self._lines: list[str] = []
        # Which step stands in a line, and which variable holds its record.
        self._steps_by_line: dict[int, tuple[Step, str]] = {}
        self._numbers = {id(node): number for number, node in enumerate(root.walk())}
        # The lines behind the loop that tell the counts.
        self._counts: list[str] = []

    def compile(self) -> Emit:
        add = self._add
        nodes = list(self._root.walk())
        add(0, "def process(values, timestamps):")
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
        add(1, "try:")
        if self._stamped:
            add(2, "for record, timestamp in zip(values, timestamps):")
        else:
            add(2, "for record in values:")
        self._write(self._root, "record", 3, filtered=False)
        add(1, "except _USER_ERRORS as error:")
        add(2, "raise _explain(error) from error")
        for number, node in enumerate(nodes):
            if node.emit is not None:
                stamps = f"stamps{number}" if self._stamped else "None"
                add(1, f"if results{number}: _emit{number}(results{number}, {stamps})")
        for line in self._counts:
            add(1, line)
        exec(_compiled("\n".join(self._lines)), self._names)
        process: Emit = self._names["process"]
        return process

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
            self._add(depth, f"append{number}({result})")
            if self._stamped:
                self._add(depth, f"stamp{number}(timestamp)")
        elif step.kind is StepKind.FILTER and not node.children:
            self._add(depth, "pass")
        filtered = filtered or step.kind is StepKind.FILTER
        for child in node.children:
            self._write(child, result, depth, filtered=filtered)

    def _add(self, depth: int, line: str) -> None:
        self._lines.append("    " * depth + line)

    def _explain(self, error: BaseException) -> BaseException:
        """The line that failed tells the operator, and the loop's variable the record."""
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == "<fused chain>":
                found = self._steps_by_line.get(trace.tb_lineno)
                if found is not None:
                    step, record = found
                    return step.explain(error, trace.tb_frame.f_locals[record])
            trace = trace.tb_next
        return error
