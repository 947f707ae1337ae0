"""Independent pieces of work, done by processes or a cluster; each answer is kept as soon as it is there."""
