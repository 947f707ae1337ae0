"""From samples to the figures of a profile; numpy and scipy, no torch."""
