"""File systems: local disks and object stores behind one interface."""
