"""The driver's brain: decides epochs, keeps the state's handles, follows a job to its end."""
