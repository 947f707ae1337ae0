"""A small real decode with KV in several tiers, and the simulator's prediction of it."""
