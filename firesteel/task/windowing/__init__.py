"""Windows at work. ``factory`` chooses between the general operator and the one for slices."""
