"""What scenarios may be called, and what their folders are called then."""

from __future__ import annotations

import hashlib
import re

_UNSEEN = r"\x00-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff"
"""Control characters, ends of lines, directions of writing."""
TITLE = rf"^[^\s{_UNSEEN}]([^{_UNSEEN}]*[^\s{_UNSEEN}])?$"
"""One line of text that can be seen, without blanks around it."""
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_OTHER = re.compile(r"[^A-Za-z0-9._-]+")
_MOST = 60


def folder_name(title: str) -> str:
    """Return ``title`` where any file system takes it as it is; else what is left of it, and a hash of all of it."""
    if _PLAIN.fullmatch(title):
        return title
    left = _OTHER.sub("-", title).strip("-._")[:_MOST].strip("-._")
    return f"{left or 'scenario'}-{hashlib.sha256(title.encode('utf-8', 'replace')).hexdigest()[:8]}"
