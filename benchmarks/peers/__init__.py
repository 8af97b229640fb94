"""One module a peer, each run as a process of its own: `python -m benchmarks.peers.<name>`."""
