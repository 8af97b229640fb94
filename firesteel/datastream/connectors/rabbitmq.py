"""The RabbitMQ connector: not in this version; importing it says so."""

from typing import TYPE_CHECKING

from firesteel.gaps import gap_importer

if not TYPE_CHECKING:  # type checkers see only what exists
    __getattr__ = gap_importer(__name__)
