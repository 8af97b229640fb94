"""The driver's part of a job: plans epochs, keeps handles of state, runs attempts to the end."""
