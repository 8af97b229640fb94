"""State as a user's function sees it, over the tables of firesteel.state."""
