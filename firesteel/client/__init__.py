"""The client of a dispatcher: packs jobs, sends them, and follows and controls them over REST."""
