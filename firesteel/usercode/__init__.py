"""User code: pickling it, sending it, loading it in tasks, and explaining its failures."""
