"""From a scenario to a decision: the cheapest configuration that holds the SLO, why, and what would move it."""
