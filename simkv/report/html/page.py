"""The page: scripts and styles of what is on it, a policy that lets nothing else in, and a size that can be sent."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence

from markupsafe import Markup

from simkv import __version__
from simkv.report.document import Document, Widget
from simkv.report.drawing import Drawings
from simkv.report.html.render import Renderer, asset, script
from simkv.report.html.thin import LIMIT, MOST_BYTES, STEPS, Thin
from simkv.report.parts import everything

_PAGE = "page"


def page(document: Document, drawings: Drawings | None = None) -> str:
    """Return ``document`` as the text of one HTML file under 5 MB; the same document gives the same text."""
    drawings = drawings or Drawings()
    found = ""
    for thin in STEPS:
        found = _filled(document, drawings, thin)
        if len(found.encode()) <= MOST_BYTES:
            break
    return found


def _filled(document: Document, drawings: Drawings, thin: Thin) -> str:
    kinds = [_PAGE, *(_kinds(document) if thin.widgets else [])]
    scripts = [script(kind) for kind in kinds]
    return Renderer(document, drawings, thin)(
        "page.html",
        version=__version__,
        policy=_policy(scripts),
        styles=[Markup(asset(f"{kind}.css")) for kind in kinds],
        scripts=[Markup(script) for script in scripts],
        thinned=thin.words,
        limit=LIMIT,
    )


def _kinds(document: Document) -> list[str]:
    """Return the kinds of widgets on the page, each once."""
    return list(dict.fromkeys(block.kind for block in everything(document) if isinstance(block, Widget)))


def _policy(scripts: Sequence[str]) -> str:
    """Return a Content-Security-Policy under which no other scripts run and nothing is loaded."""
    hashes = " ".join(f"'sha256-{_hash(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
