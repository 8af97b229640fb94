"""Code generation: all functions that Firesteel writes and compiles while a job runs."""
