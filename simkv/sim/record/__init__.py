"""What a run's events were, one by one, in a bounded window of it."""
