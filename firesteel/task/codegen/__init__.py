"""Generated code: loops that several operators of a chain share."""
