"""When things happen: one serving system as a discrete-event simulation. Start with ``config.py``, ``engine.py``."""
