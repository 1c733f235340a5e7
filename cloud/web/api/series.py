"""`GET /data/series`: numbers of readings in buckets of time, as JSON, for plots."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from cloud.domain.data.series import MAX_POINTS, POINTS, Plotted, SourceSeries
from cloud.services.common.base import Cloud
from cloud.services.data.data import DataService
from cloud.web.common.site import author_of, offload, status_of
from cloud.web.views.data_view import DataQuery
from cloud.web.views.log_view import time_of
from schema import ConfigError, MachineError

_TIMES: Final = ("start", "end", "from", "to")
_CHARACTERS: Final = 20  # of a number in JSON


class SeriesData:
    """The endpoint. Its answer is described in docs/howto/cloud-data.md."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def series(self, request: Request) -> Response:
        """`GET /data/series` with the fields of the data page's filter, and `field`, `from`, `to` and `points`."""
        asked = request.query_params
        try:
            times = {name: _time(asked, name) for name in _TIMES}
            points = _points(asked.get("points", "") or str(POINTS))
            service = DataService(self._cloud, author_of(request))
            plotted = await service.tabular_series(
                DataQuery.of(asked).filter(), asked.getlist("field"), times["from"], times["to"], points
            )
        except ConfigError as error:
            said = {"error": str(error), "path": error.path, "value": error.value, "remedy": error.remedy}
            return JSONResponse(said, status_of(error))
        if plotted is None:
            start, end = times["from"] or times["start"], times["to"] or times["end"]
            return JSONResponse({**_EMPTY, "from": _milliseconds_of(start), "to": _milliseconds_of(end)})
        size = sum(4 * len(field.mean) * _CHARACTERS for each in plotted.series for field in each.fields)
        return Response(await offload(request, size, _text(plotted)), media_type="application/json")


_EMPTY: Final[Mapping[str, Any]] = {"step": None, "times": [], "sampled": False, "more": False, "series": []}


def _text(plotted: Plotted) -> Callable[[], bytes]:
    return lambda: json.dumps(json_of(plotted), ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def json_of(plotted: Plotted) -> dict[str, Any]:
    """Return the answer; times are in milliseconds since 1970."""
    return {
        "from": plotted.start / 1000,
        "to": plotted.end / 1000,
        "step": plotted.buckets.step / 1000,
        "times": [start / 1000 for start in plotted.buckets.starts()],
        "sampled": plotted.sampled,
        "more": plotted.more,
        "series": [_series(each) for each in plotted.series],
    }


def _series(series: SourceSeries) -> dict[str, Any]:
    source = series.source
    return {
        "part_id": source.part_id,
        "machine": source.machine,
        "part": source.part,
        "component": source.component,
        "type": source.component_type,
        "method": source.method,
        "tags": series.tags,
        "sampled": series.sampled,
        "others": series.others,
        "fields": [
            {
                "name": field.name,
                "boolean": field.boolean,
                "min": field.least,
                "max": field.greatest,
                "mean": field.mean,
                "count": field.count,
                "last": {"time": field.end / 1000, "value": field.last},
            }
            for field in series.fields
        ],
    }


def _time(asked: Mapping[str, str], name: str) -> datetime | None:
    """Return a time of the query. ConfigError if it is not one."""
    text = asked.get(name, "").strip()
    try:
        return time_of(text, name)
    except MachineError as error:
        raise ConfigError(name, f"{text[:40]!r} is not a time", value=text[:40], remedy=error.remedy) from None


def _points(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 9):
        remedy = f"use a number from 2 to {MAX_POINTS}"
        raise ConfigError("points", f"{text[:40]!r} is not a number", value=text[:40], remedy=remedy)
    return int(text)


def _milliseconds_of(moment: datetime | None) -> float | None:
    return None if moment is None else (moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1000
