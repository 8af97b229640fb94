"""What else is measured of Firesteel, one section a file: what it costs, and what the references do not have."""
