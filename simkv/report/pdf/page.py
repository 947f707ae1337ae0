"""The PDF of a document; needs Pango, which is no Python package."""

from __future__ import annotations

import logging
from typing import Any

from markupsafe import Markup

from simkv import __version__
from simkv.errors import InputError, Problem
from simkv.report.document import Document
from simkv.report.drawing import Drawings
from simkv.report.html.render import Renderer, asset
from simkv.report.html.thin import Thin

_MEND = (
    "install it (Debian: apt install libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0; macOS: brew install pango), "
    "or leave pdf out of --format"
)
_IDENTIFIER = b"simkv report"
"""Instead of one by chance, so that the same document gives the same bytes."""


def page(document: Document, drawings: Drawings | None = None) -> bytes:
    """Return ``document`` as PDF; the same document gives the same bytes. Raises InputError where Pango is missing."""
    weasy = _weasyprint()
    text = Renderer(document, drawings or Drawings(), Thin(), paper=True)(
        "paper.html", version=__version__, style=Markup(asset("paper.css"))
    )
    only_data = weasy.urls.URLFetcher(allowed_protocols=("data",))
    found: bytes = weasy.HTML(string=text, url_fetcher=only_data).write_pdf(pdf_identifier=_IDENTIFIER)
    return found


def _weasyprint() -> Any:
    logging.getLogger("weasyprint").setLevel(logging.CRITICAL)  # it tells of each font and each property
    logging.getLogger("fontTools").setLevel(logging.CRITICAL)
    try:
        import weasyprint
        import weasyprint.urls
    except (OSError, ImportError) as error:  # OSError: a library that it loads isn't there
        raise InputError(
            Problem("a PDF needs Pango, which isn't there", _MEND, path="--format", value="pdf")
        ) from error
    return weasyprint
