"""Closed forms with figures put in: what ``simkv calc`` prints.

``answer.py`` says what an answer is and how it reads; each other file works one out: from figures in SI, or
from a model and a machine of the catalogue.
"""
