"""PostgresCdcSource. Not in PyFlink."""

from firesteel.connectors.postgres_cdc.source import PostgresCdcSource, PostgresCdcSourceBuilder

__all__ = ["PostgresCdcSource", "PostgresCdcSourceBuilder"]
