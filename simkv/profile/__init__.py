"""Calibration profiles: what a machine was measured to do, as a file that scenarios name as their hardware."""
