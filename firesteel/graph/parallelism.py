"""Flink's rules for parallelism and maximum parallelism."""

from __future__ import annotations

from firesteel.errors import InvalidProgramError

LOWER_BOUND_MAX_PARALLELISM = 128
UPPER_BOUND_MAX_PARALLELISM = 1 << 15


def default_max_parallelism(parallelism: int) -> int:
    """1.5 times the parallelism, rounded up to a power of two, between 128 and 32768."""
    wanted = parallelism + parallelism // 2
    power_of_two = 1 << max(0, wanted - 1).bit_length()
    return min(max(power_of_two, LOWER_BOUND_MAX_PARALLELISM), UPPER_BOUND_MAX_PARALLELISM)


def check_parallelism(parallelism: object) -> int:
    if isinstance(parallelism, bool) or not isinstance(parallelism, int) or parallelism < 1:
        raise InvalidProgramError(
            f"The parallelism must be an int of at least 1, but it is {parallelism!r}."
        )
    return parallelism


def check_max_parallelism(max_parallelism: object) -> int:
    if (
        isinstance(max_parallelism, bool)
        or not isinstance(max_parallelism, int)
        or not 0 < max_parallelism <= UPPER_BOUND_MAX_PARALLELISM
    ):
        raise InvalidProgramError(
            f"The maximum parallelism must be an int between 1 and "
            f"{UPPER_BOUND_MAX_PARALLELISM}, but it is {max_parallelism!r}."
        )
    return max_parallelism


def resolve_max_parallelism(operator: str, parallelism: int, *configured: int | None) -> int:
    """The first configured maximum, else the default. The parallelism must not exceed it."""
    chosen = next((value for value in configured if value is not None), None)
    max_parallelism = default_max_parallelism(parallelism) if chosen is None else chosen
    if parallelism > max_parallelism:
        raise InvalidProgramError(
            f"Operator '{operator}': the parallelism {parallelism} is higher than the maximum "
            f"parallelism {max_parallelism}. Lower the parallelism, or raise the maximum with "
            f"set_max_parallelism() (at most {UPPER_BOUND_MAX_PARALLELISM})."
        )
    return max_parallelism
