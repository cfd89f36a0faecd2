"""Make matplotlib's SVG files safe to put several of into one HTML page."""

from __future__ import annotations

import html
import re

ID = re.compile(r'\bid="([^"]+)"')
PATH = re.compile(r'\bd="[^"]*"')
LONG_FRACTION = re.compile(r"(\.\d\d)\d+")
REFERENCE = re.compile(r'(url\(#|href="#)([^")]+)')


def inline_svg(document: str, *, prefix: str, label: str) -> str:
    """The <svg> element of an SVG `document`, ready for HTML.

    Every id and every reference to one starts with `prefix`, so that two figures on a page never share a clip path or
    marker. Paths keep two decimals, a hundredth of a point. `label` is what a screen reader reads out. The XML prologue
    and the metadata go.
    """
    svg = document[document.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = ID.sub(rf'id="{prefix}-\1"', svg)
    svg = REFERENCE.sub(rf"\g<1>{prefix}-\g<2>", svg)
    svg = PATH.sub(lambda path: LONG_FRACTION.sub(r"\1", path[0]), svg)
    svg = svg.replace("xlink:href=", "href=")
    svg = re.sub(r'\sxmlns(:xlink)?="[^"]*"', "", svg)
    return svg.replace("<svg", f'<svg role="img" aria-label="{html.escape(label)}"', 1)
