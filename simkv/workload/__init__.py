"""What arrives: synthetic requests and traces. Start with ``request.py``, then ``synthetic.py``.

``readers/`` read traces; ``inspect.py`` says what one is like (``burstiness.py`` its arrivals),
``writer.py`` writes one in simkv's own format, ``fetch.py`` downloads one. ``clients/`` and
``fitted/`` draw requests from published client data and from what was fitted to a trace.
"""
