"""Scripts that draw the figures of the manual."""
