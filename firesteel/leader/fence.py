"""The fence of a term: a file that slots look for right before they commit."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.checkpoint.storage.storage import open_storage
from firesteel.errors import LeadershipLostError
from firesteel.filesystems.file_systems import FileSystemOptions


@dataclass(frozen=True, slots=True)
class Fence:
    """A file that exists as long as a term lasts. It travels to slots with the program.

    Attributes:
        directory: The directory of the file, a path or URI.
        name: The name of the file.
        term: The number of the leadership.
        options: The access to object stores.
    """

    directory: str
    name: str
    term: int
    options: FileSystemOptions | None = None

    def check(self) -> None:
        """Raise LeadershipLostError if the term has ended."""
        if not open_storage(self.directory, self.options).exists(self.name):
            raise LeadershipLostError(self.term, "a different master has removed its fence")
