"""Window operators. ``factory`` chooses a fast one where it can, and the general one otherwise."""
