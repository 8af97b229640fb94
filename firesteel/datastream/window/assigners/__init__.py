"""Window assigners, one kind of window a file."""
