"""A document as GitHub-flavoured Markdown, its figures and tables as files beside it."""
