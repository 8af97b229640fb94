"""State kept in dictionaries of the process: fast, bounded by memory."""
