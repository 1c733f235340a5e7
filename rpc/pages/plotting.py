"""Properties of the island of plots, which web/src/plot draws. Pure."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Final

YEAR: Final = timedelta(days=366)
STATISTICS: Final = timedelta(days=7)  # for which a machine keeps those of its own
_MILLISECOND: Final = timedelta(milliseconds=1)


def plot_props(
    source: str,
    name: str,
    *,
    query: str = "",
    start: str = "",
    end: str = "",
    lines: str = "",
    shortest: timedelta = timedelta(0),
    longest: timedelta = YEAR,
) -> str:
    """Return the properties of plots of what the path `source` answers; `name` is that of saved files.

    `query` narrows the source, `start` and `end` are the range at first. Ranges from `shortest` to `longest` are
    offered: others have no numbers. `lines` is the path of a page of what is plotted, which takes times.
    """
    times = {"from": start, "to": end, "shortest": shortest // _MILLISECOND, "longest": longest // _MILLISECOND}
    return json.dumps({"source": source, "name": name, "query": query, "lines": lines, **times})
