"""One scenario at many points: what varies, in which order, and what came of it."""
