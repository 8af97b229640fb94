"""Running operators, one file each. ``factory`` creates the operator of a spec."""
