"""What arrives: synthetic requests and traces. Start with ``request.py``, then ``synthetic.py``."""
