"""Peers: one module per peer, which runs as a process with `python -m benchmarks.peers.<name>`."""
