"""What simulating costs: whole commands beside their targets, and cost against scale; ``make bench`` runs all of it."""
