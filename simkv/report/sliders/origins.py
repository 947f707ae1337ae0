"""Where the values of ``scenario.resolved.yaml`` came from: the remark behind each."""

from __future__ import annotations

import re

_LINE = re.compile(r"^( *)([A-Za-z_][\w.-]*):(?: .*?)?(?: +# (?P<origin>[^#]*))?$")
_INDENT = 2


def origins(resolved: str) -> dict[str, str]:
    """Return what is said behind each value, by its path: ``link.h2d`` to ``catalogue, measured``."""
    found: dict[str, str] = {}
    path: list[str] = []
    for line in resolved.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        del path[len(match[1]) // _INDENT :]
        path.append(match[2])
        if match["origin"]:
            found[".".join(path)] = match["origin"].strip()
    return found
