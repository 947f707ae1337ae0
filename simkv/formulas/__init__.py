"""Closed forms, without state: sizes, memory budget, step time, overlap, break-even, and oracles for the simulator."""
