"""How long a session waits after a record for the next one, record by record."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any


class SessionWindowTimeGapExtractor(ABC):
    @abstractmethod
    def extract(self, element: Any) -> int:
        """The gap in milliseconds; it must be positive."""
