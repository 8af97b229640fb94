"""Change data capture of PostgreSQL: a snapshot of a table, then its changes."""
