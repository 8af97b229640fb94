"""Keyed and operator state: where it belongs (key groups), how it is kept, how it is written down."""
