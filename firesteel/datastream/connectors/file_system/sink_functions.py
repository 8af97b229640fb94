"""The functions that a user gives to the file sink: calls of them that explain what goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from firesteel.common.serialization import Encoder, SimpleStringEncoder
from firesteel.errors import FiresteelError, shorten

__all__ = ["WrongResultError", "batch_encoder", "explaining"]


class WrongResultError(FiresteelError, TypeError):
    """A function of the user's returned something that cannot be used."""

    def __init__(self, function: Callable[..., Any], expected: str, result: object) -> None:
        name = getattr(function, "__qualname__", type(function).__qualname__)
        super().__init__(f"{name} must return {expected}, but it returned {shorten(result)}")
        self.function = function


@contextmanager
def explaining(
    functions: Sequence[Callable[..., Any]],
    values: Sequence[Any] | None = None,
    iterator: Iterator[Any] | None = None,
) -> Iterator[None]:
    """What one of ``functions`` raises names it, and the record that ``iterator`` gave out last.

    An error that none of them raised is put down to the last.
    """
    try:
        yield
    except WrongResultError as error:
        raise _failure(error, error.function, values, iterator) from error
    except FiresteelError:
        raise
    except BaseException as error:
        # Runs in a task, where this room is loaded already.
        from firesteel.task.errors import is_failure
        from firesteel.task.windowing.user_code import failed_function

        if not is_failure(error):
            raise
        raise _failure(error, failed_function(error, *functions), values, iterator) from error


def _failure(
    error: BaseException,
    function: Callable[..., Any],
    values: Sequence[Any] | None,
    iterator: Iterator[Any] | None,
) -> Exception:
    from firesteel.task.errors import user_function_error

    return user_function_error(error, "", function, values, iterator)


def batch_encoder(encoder: Encoder) -> Callable[[list[Any]], bytes]:
    """Encodes many records at once."""
    encode = encoder.encode

    def encode_each(values: list[Any]) -> bytes:
        iterator = iter(values)
        with explaining([encode], values, iterator):
            parts: list[Any] = [encode(value) for value in iterator]
        try:
            return b"".join(parts)
        except TypeError:
            wrong = next(i for i, part in enumerate(parts) if not isinstance(part, _BYTES))
            with explaining([encode], [values[wrong]]):
                raise WrongResultError(encode, "bytes", parts[wrong]) from None
            raise

    def encode_texts(values: list[Any]) -> bytes:
        try:
            text = "\n".join(values)
        except TypeError:  # not only texts
            return encode_each(values)
        return f"{text}\n".encode()

    if type(encoder) is SimpleStringEncoder and encoder._charset == "utf-8":
        return encode_texts
    return encode_each


_BYTES = (bytes, bytearray, memoryview)
