"""Predicted beside expected: cases, what answers them, how they are judged."""
