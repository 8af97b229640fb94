"""Sources and sinks, and the interfaces to write your own, under PyFlink's import path."""

from typing import TYPE_CHECKING

from firesteel.connectors.base import DeliveryGuarantee, Sink, Source
from firesteel.gaps import gap_importer

__all__ = ["DeliveryGuarantee", "Sink", "Source"]

if not TYPE_CHECKING:  # type checkers see only what exists
    __getattr__ = gap_importer(__name__)
