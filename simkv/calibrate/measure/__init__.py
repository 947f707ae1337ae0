"""What is measured, a file each, which offers ``tasks(bench)``.

``places``, ``threads`` and ``topology`` serve those that move bytes.
"""
