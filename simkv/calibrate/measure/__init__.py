"""What is measured, a file each, which offers ``tasks(bench)``.

``places``, ``threads`` and ``topology`` serve those that move bytes, ``kvpool`` those that read KV, ``carrier`` and
``without_pause`` contention; ``between`` computes between two copies, and ``pace`` estimates a session's time.
"""
