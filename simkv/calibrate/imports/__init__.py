"""Figures that other tools measured, read from what they print."""
