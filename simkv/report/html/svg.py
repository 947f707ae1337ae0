"""Matplotlib's SVG as a part of a page: colours that follow the page's, its own ids, no more digits than are seen."""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree

from simkv.plots.style import FAINT, INK, PALETTE

_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_HREF = f"{{{_XLINK}}}href"
COLOURS: Mapping[str, str] = {
    **{colour.lower(): f"--s{number}" for number, colour in enumerate(PALETTE, start=1)},
    INK.lower(): "--ink",
    "#000000": "--ink",
    FAINT.lower(): "--faint",
    "#e6e6e6": "--rule",
    "#e8eef4": "--shade",
    "#ffffff": "--paper",
}
"""The page's variable that stands for each colour that figures use."""

_COLOUR = re.compile(r"#[0-9a-fA-F]{6}\b")
_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_LETTERS = "'DejaVu Sans', Verdana, 'Segoe UI', sans-serif"
"""As wide as those that the figure was laid out with."""
_WIDEST = 1.5
"""Pixels of the page for a point of the figure: letters of 10 points are then as large as those around them."""
_DROPPED = ("metadata", "title", "desc", "style")
_INDENT = re.compile(r">\s+<")


def inline(svg: bytes, name: str, alt: str) -> str:
    """Return the SVG file ``svg`` as an element; ``name`` (an anchor's letters) tells its ids from other figures'."""
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _XLINK)
    root = ElementTree.fromstring(_CONTROL.sub("", svg.decode("utf-8")))
    for parent in list(root.iter()):
        for child in [child for child in parent if child.tag.rpartition("}")[2] in _DROPPED]:
            parent.remove(child)
    for element in root.iter():
        _adapt(element, name)
    for size in ("width", "height", "version"):
        root.attrib.pop(size, None)
    widest = _WIDEST * float(root.attrib["viewBox"].split()[2])
    root.attrib |= {"role": "img", "aria-label": alt, "style": f"max-width: {widest:.0f}px"}
    return _INDENT.sub("><", ElementTree.tostring(root, encoding="unicode")).strip()


def _adapt(element: ElementTree.Element, name: str) -> None:
    found = element.attrib
    if "id" in found:
        found["id"] = f"{name}-{found['id']}"
    if found.get(_HREF, "").startswith("#"):
        found[_HREF] = f"#{name}-{found[_HREF][1:]}"
    for key, value in found.items():
        if "url(#" in value:
            found[key] = _REFERENCE.sub(rf"url(#{name}-\1)", value)
    for key in ("d", "x", "y", "points"):
        if key in found:
            found[key] = _NUMBER.sub(_rounded, found[key])
    if "style" in found:
        found["style"] = _COLOUR.sub(_variable, found["style"]).replace("'DejaVu Sans'", _LETTERS)


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def _variable(colour: re.Match[str]) -> str:
    name = COLOURS.get(colour[0].lower())
    return f"var({name}, {colour[0]})" if name is not None else colour[0]
