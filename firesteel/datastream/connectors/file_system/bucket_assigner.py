"""BucketAssigner: which directory a record goes to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime
from typing import Any

from firesteel.datastream.connectors.base import WriteContext
from firesteel.datastream.connectors.file_system.date_pattern import DatePattern, time_zone

__all__ = ["BucketAssigner"]


class BucketAssigner(ABC):
    """Names the bucket of each record: a directory below the sink's base path.

    >>> class ByCountry(BucketAssigner):
    ...     def get_bucket_id(self, element, context):
    ...         return f"country={element['country']}"
    """

    #: Whether the bucket depends on the record. If not, one call serves a whole batch.
    depends_on_element: bool = True

    @abstractmethod
    def get_bucket_id(self, element: Any, context: WriteContext) -> str:
        """A relative path; the empty text is the base path itself."""

    @staticmethod
    def base_path_bucket_assigner() -> BucketAssigner:
        """All files lie in the base path."""
        return BasePathBucketAssigner()

    @staticmethod
    def date_time_bucket_assigner(
        format_str: str = "yyyy-MM-dd--HH", timezone_id: str | None = None
    ) -> BucketAssigner:
        """Buckets by processing time, named by a pattern of Java's DateTimeFormatter."""
        return DateTimeBucketAssigner(format_str, timezone_id)


class BasePathBucketAssigner(BucketAssigner):
    depends_on_element = False

    def get_bucket_id(self, element: Any, context: WriteContext) -> str:
        return ""


class DateTimeBucketAssigner(BucketAssigner):
    depends_on_element = False

    def __init__(self, format_str: str, timezone_id: str | None) -> None:
        self._format_str = format_str
        self._timezone_id = timezone_id
        self._pattern = DatePattern(format_str)
        self._zone = time_zone(timezone_id)

    def get_bucket_id(self, element: Any, context: WriteContext) -> str:
        seconds = context.current_processing_time() / 1000
        # Without a zone this is the system's, as Java's default zone.
        return self._pattern.format(datetime.fromtimestamp(seconds, self._zone))

    def __reduce__(self) -> tuple[Any, ...]:
        return DateTimeBucketAssigner, (self._format_str, self._timezone_id)
