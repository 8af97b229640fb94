"""File systems: one interface for local disks and object stores."""
