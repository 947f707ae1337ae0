"""YAML to a resolved scenario, and that to what is simulated. Start with ``schema.py``, then ``load.py``."""
