"""The dispatcher: the jobs of one driver, running and finished, and the slots that they share."""
