"""Tables as base and overlay: what the backends have in common."""
