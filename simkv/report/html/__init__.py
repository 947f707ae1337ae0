"""A document as one HTML file that asks nobody for anything."""
