"""Running operators, one file each. ``task.operator_factory`` creates the operator of a spec."""
