"""Closed forms as lines, and simulated points on them: what p, β and λ do to one scenario."""
