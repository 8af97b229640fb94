"""The code of the user: pickling it, shipping it, loading it in a task, and explaining its failures."""
