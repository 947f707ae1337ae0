"""A configuration in an engine's own words: flags or a config file, in its units, a comment a line."""
