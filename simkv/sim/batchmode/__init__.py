"""Static batches in place of continuous batching: all of a batch starts together, and ends with its longest output."""
