"""The queries of Nexmark, one program each."""
