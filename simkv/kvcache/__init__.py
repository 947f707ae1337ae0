"""What KV is where: prefix indices, pools, eviction policies. No clock; start with ``index.py``."""
