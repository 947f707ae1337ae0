"""From one run's columns to an answer: metrics, warnings, verdict, and the folder that holds them.

Start with ``summary.py`` (what is computed), then ``metrics.py`` (what each figure means).
"""
