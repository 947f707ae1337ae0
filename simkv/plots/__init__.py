"""Figures, drawn from plain answers: one module a figure, ``style`` for what they share.

The only importer of matplotlib, inside the functions that draw. Titles say what was found, axes
carry units, colours can be told apart by the colour-blind.
"""
