"""Programs that developers run: the manual and its figures."""
