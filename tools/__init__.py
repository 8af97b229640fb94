"""Programs that developers run: the manual, its figures, and checks."""
