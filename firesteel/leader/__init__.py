"""Several masters, one leader: election, fencing, and the entries that masters hand over."""
