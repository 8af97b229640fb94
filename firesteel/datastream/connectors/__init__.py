"""Sources and sinks, and the contracts for writing one's own."""

from firesteel.datastream.connectors.base import DeliveryGuarantee, Sink, Source

__all__ = ["DeliveryGuarantee", "Sink", "Source"]
