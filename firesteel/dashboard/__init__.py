"""The web dashboard: files in ``static``, built from the sources in ``dashboard`` of the repository."""
