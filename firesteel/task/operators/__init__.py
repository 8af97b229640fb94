"""The operators at work, one file each. ``factory`` finds the one for a spec."""
