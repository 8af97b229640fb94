"""Extra sections, one per file: costs of Firesteel, and features that references lack."""
