"""Values of settings in Flink's syntax: durations, memory sizes, choices, lists and maps."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, TypeVar

import yaml

__all__ = [
    "BOOLEAN",
    "DOUBLE",
    "DURATION",
    "INT",
    "LIST",
    "LOG_LEVEL",
    "MAP",
    "MEMORY_SIZE",
    "STRING",
    "ValueType",
    "choice",
    "format_value",
    "parse_list",
    "whole_number",
]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ValueType(Generic[T]):
    """A type of settings: its name in the manual, and a parser for its text.

    ``parse`` raises a ValueError whose message names the expected format.
    """

    name: str
    parse: Callable[[Any], T]


def _parse_string(value: Any) -> str:
    return format_value(value)


def _parse_int(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        return int(str(value).strip())
    except ValueError:
        raise ValueError("expected an integer") from None


def _parse_double(value: Any) -> float:
    if isinstance(value, bool):
        raise ValueError("expected a number")  # noqa: TRY004  # see ValueType.parse
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError("expected a number") from None


def _parse_boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in ("true", "false"):
        return text == "true"
    raise ValueError("expected true or false")


_NUMBER_AND_UNIT = re.compile(r"(\d+)\s*([^\W\d_]*)")

_DURATION_UNITS = {
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "min": timedelta(minutes=1),
    "s": timedelta(seconds=1),
    "ms": timedelta(milliseconds=1),
    "µs": timedelta(microseconds=1),
}
_DURATION_NAMES = {
    "": "ms",
    **dict.fromkeys(("d", "day", "days"), "d"),
    **dict.fromkeys(("h", "hour", "hours"), "h"),
    **dict.fromkeys(("m", "min", "minute", "minutes"), "min"),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("ms", "milli", "millis", "millisecond", "milliseconds"), "ms"),
    # Unicode has two micro signs.
    **dict.fromkeys(
        ("\u00b5s", "\u03bcs", "us", "micro", "micros", "microsecond", "microseconds"), "µs"
    ),
}
_NANOSECONDS = ("ns", "nano", "nanos", "nanosecond", "nanoseconds")
_ISO_DURATION = re.compile(
    r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.IGNORECASE
)
_DURATION_EXPECTED = "expected a duration such as '100 ms', '10 min', 'PT10M' or 100 (milliseconds)"


def _parse_duration(value: Any) -> timedelta:
    if isinstance(value, timedelta):
        return value
    if isinstance(value, bool):
        raise ValueError(_DURATION_EXPECTED)  # noqa: TRY004  # see ValueType.parse
    text = str(value).strip()
    iso = _ISO_DURATION.fullmatch(text)
    if iso and any(iso.groups()):
        days, hours, minutes, seconds = (float(part or 0) for part in iso.groups())
        return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    match = _NUMBER_AND_UNIT.fullmatch(text)
    if match is None:
        raise ValueError(_DURATION_EXPECTED)
    amount, unit = int(match[1]), match[2].lower()
    if unit in _NANOSECONDS:
        return timedelta(microseconds=amount // 1000)
    if unit not in _DURATION_NAMES:
        raise ValueError(_DURATION_EXPECTED)
    try:
        return amount * _DURATION_UNITS[_DURATION_NAMES[unit]]
    except OverflowError:
        raise ValueError("the duration is too long") from None


_MEMORY_FACTORS = {
    **dict.fromkeys(("", "b", "bytes"), 1),
    **dict.fromkeys(("k", "kb", "kibibytes"), 1 << 10),
    **dict.fromkeys(("m", "mb", "mebibytes"), 1 << 20),
    **dict.fromkeys(("g", "gb", "gibibytes"), 1 << 30),
    **dict.fromkeys(("t", "tb", "tebibytes"), 1 << 40),
}


def _parse_memory_size(value: Any) -> int:
    match = _NUMBER_AND_UNIT.fullmatch(str(value).strip())
    factor = _MEMORY_FACTORS.get(match[2].lower()) if match else None
    if match is None or factor is None:
        raise ValueError("expected a memory size such as '64 mb' or 65536 (bytes)")
    return int(match[1]) * factor


def parse_list(value: Any) -> list[str]:
    """Read ``a;b;c``, a YAML list in one line or in several, or a Python list."""
    if isinstance(value, list | tuple):
        return [format_value(element) for element in value]
    text = str(value)
    # All scalars as text: in YAML 1.1, which PyYAML reads, a plain "no" is a boolean.
    loaded = _load_yaml(text, yaml.BaseLoader)
    if isinstance(loaded, list):
        return [format_value(element) for element in loaded]
    return [part.strip() for part in text.split(";") if part.strip()]


_MAP_ENTRY = re.compile(r"\s*('(?:[^']|'')*'|[^:,']*)\s*:\s*('(?:[^']|'')*'|[^,']*)\s*(?:,|$)")


def _parse_map(value: Any) -> dict[str, str]:
    """Read ``a:1,b:2``, a YAML map, or a dict; single quotes protect colons and commas."""
    if isinstance(value, Mapping):
        return {str(key): format_value(element) for key, element in value.items()}
    text = str(value).strip()
    if text.startswith("{"):
        loaded = _load_yaml(text, yaml.SafeLoader)
        if isinstance(loaded, dict):
            return {str(key): format_value(element) for key, element in loaded.items()}
    entries: dict[str, str] = {}
    position = 0
    while position < len(text):
        match = _MAP_ENTRY.match(text, position)
        if match is None:
            raise ValueError("expected a map such as 'key1:value1,key2:value2'")
        entries[_unquote(match[1])] = _unquote(match[2])
        position = match.end()
    return entries


def _unquote(text: str) -> str:
    text = text.strip()
    if text.startswith("'") and text.endswith("'") and len(text) >= 2:
        return text[1:-1].replace("''", "'")
    return text


def _load_yaml(text: str, loader: type[yaml.BaseLoader | yaml.SafeLoader]) -> Any:
    try:
        return yaml.load(text, loader)
    except yaml.YAMLError:
        return None


def whole_number(smallest: int, largest: int | None = None) -> ValueType[int]:
    """An integer of at least ``smallest``, and at most ``largest``."""
    expected = f"an integer of at least {smallest}" + (f" and at most {largest}" if largest else "")

    def parse(value: Any) -> int:
        number = _parse_int(value)
        if number < smallest or (largest is not None and number > largest):
            raise ValueError(f"expected {expected}")
        return number

    return ValueType("int", parse)


def choice(*allowed: str) -> ValueType[str]:
    """One of a few names, in upper or lower case, with ``-``, ``_`` or nothing between words."""
    by_form = {_choice_form(name): name for name in allowed}

    def parse(value: Any) -> str:
        name = by_form.get(_choice_form(str(getattr(value, "name", value))))
        if name is None:
            raise ValueError(f"expected one of {', '.join(allowed)}")
        return name

    return ValueType(f"one of {', '.join(allowed)}", parse)


def _choice_form(text: str) -> str:
    return text.strip().lower().replace("_", "").replace("-", "")


STRING = ValueType("string", _parse_string)
INT = ValueType("int", _parse_int)
DOUBLE = ValueType("double", _parse_double)
BOOLEAN = ValueType("boolean", _parse_boolean)
DURATION = ValueType("duration", _parse_duration)
MEMORY_SIZE = ValueType("memory size", _parse_memory_size)
LIST = ValueType("list", parse_list)
MAP = ValueType("map", _parse_map)
LOG_LEVEL = choice("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "OFF")


def format_value(value: Any) -> str:
    """Format a value in Flink's syntax."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, timedelta):
        return _format_duration(value)
    if isinstance(value, list | tuple):
        # As Flink 2 writes it. With semicolons, an element could not contain one.
        plain = [one if isinstance(one, int | float) else format_value(one) for one in value]
        return _one_line_yaml(plain)
    if isinstance(value, Mapping):
        return ",".join(
            f"{_quote(str(key))}:{_quote(format_value(element))}" for key, element in value.items()
        )
    return str(value)


def _one_line_yaml(value: list[Any]) -> str:
    text: str = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=math.inf)
    return text.rstrip("\n")


def _format_duration(value: timedelta) -> str:
    for unit, size in _DURATION_UNITS.items():
        if value % size == timedelta(0) and (value or unit == "ms"):
            return f"{value // size} {unit}"
    return f"{value // timedelta(microseconds=1)} µs"


def _quote(text: str) -> str:
    if any(mark in text for mark in ":,'") or text != text.strip():
        return "'" + text.replace("'", "''") + "'"
    return text
