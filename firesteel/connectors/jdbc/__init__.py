"""Tables of SQL databases: PostgreSQL, SQLite, MySQL and MariaDB."""
