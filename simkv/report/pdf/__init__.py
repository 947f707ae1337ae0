"""A document as PDF: its page for paper, laid out by WeasyPrint, without a network."""
