"""Times on pages: a script shows them in the local time of the reader, so each is a `time` with its moment."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TEMPLATES = sorted((Path(__file__).parents[4] / "cloud" / "web" / "templates").glob("*.html"))
MOMENT = re.compile(r"\{\{[^}]*\| clock\b[^}]*\}\}")
ELEMENT = re.compile(r"<time [^<]*data-(?:local|ago)[^<]*</time>|title=\"[^\"]*\"")


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_no_time_is_shown_in_utc_only(template: Path) -> None:
    """The page Audit groups its entries by days in UTC, and says so: its times are in titles, and without a date."""
    text = ELEMENT.sub("", template.read_text())
    assert MOMENT.findall(text) == []
