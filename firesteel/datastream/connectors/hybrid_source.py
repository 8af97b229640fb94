"""HybridSource, under PyFlink's import path."""

from firesteel.connectors.hybrid import HybridSource, HybridSourceBuilder, SourceSwitchContext

__all__ = ["HybridSource", "HybridSourceBuilder", "SourceSwitchContext"]
