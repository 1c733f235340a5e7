"""Statistics of a machine on the cloud's pages: read from the machine, checked, and who may see them."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from grpclib.const import Cardinality, Handler

from cloud.domain.organizations.first import create_owner
from engine.metrics.history import History
from rpc.api.own import SERIES, Raw
from rpc.call import ServerCore
from runtime.server.port.statistics import series_handler
from tests.unit.cloud.pages import signed_in
from tests.unit.cloud.services.reverse.site import Machine, Site

START = 1_790_000_000_000  # milliseconds since 1970
ASKED = "from=2026-09-21T14:13:20Z&to=2026-09-21T14:23:20Z&points=100"
SAMPLE = {"proc.cpu.user_s": 1.0}


async def answering(machine: Machine, answer: bytes | None = None) -> list[Any]:
    """Let a machine answer with its own statistics, or with any `answer`. Return the list of what it is asked."""
    asked: list[Any] = []
    history = History()

    async def series(start: int, end: int, points: int) -> dict[str, Any]:
        asked.append((start, end, points))
        course = await history.series(start, end, points)
        numbers = [20.0] * len(course["times"])
        field = {"name": "processor_used_pct", "label": "processor", "boolean": False, "count": [1] * len(numbers)}
        field |= {"min": numbers, "max": numbers, "mean": numbers, "last": {"time": start, "value": 20.0}}
        return {**course, "series": [{"machine": "", "fields": [field]}]}

    async def any_answer(stream: Any) -> None:
        await stream.recv_message()
        await stream.send_message(Raw(answer or b""))

    handler = series_handler(series)
    if answer is not None:
        handler = Handler(any_answer, Cardinality.UNARY_UNARY, Raw, Raw)  # type: ignore[arg-type]
    machine.core = ServerCore({SERIES: handler})
    return asked


async def test_the_statistics_of_a_machine_are_shown(opened: Site, part: str) -> None:
    asked = await answering(await opened.machine(part))
    person = await signed_in(opened.cloud)
    page = (await person.get(f"/machines/{part}/statistics")).text
    assert f"/machines/{part}/statistics/series" in page
    answer = (await person.get(f"/machines/{part}/statistics/series?{ASKED}")).json()
    assert asked == [(START, START + 600_000, 100)]
    (source,) = answer["series"]
    assert [(field["name"], field["label"]) for field in source["fields"]] == [("processor_used_pct", "processor")]
    assert len(source["fields"][0]["mean"]) == len(answer["times"]) <= 101


async def test_a_machine_that_is_offline_has_a_page_that_says_so(opened: Site, part: str) -> None:
    person = await signed_in(opened.cloud)
    page = await person.get(f"/machines/{part}/statistics")
    assert page.status == 200
    assert "The machine is offline" in page.text
    assert "data-island" not in page.text
    assert (await person.get(f"/machines/{part}/statistics/series")).status == 503


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"[" * 100_000,
        b'{"from": 0, "to": 1, "step": 1, "times": [], "series": [{"fields": [{"name": 1}]}]}',
        json.dumps({"from": 0, "to": 1, "step": 1, "times": [0] * 3000, "series": []}).encode(),
        b" " * (1 << 20) + b'{"from": 0, "to": 1, "step": 1, "times": [], "series": []}',
    ],
    ids=["nothing", "depth", "types", "points", "size"],
)
async def test_an_answer_that_cannot_be_used_is_not_passed_on(opened: Site, part: str, answer: bytes) -> None:
    await answering(await opened.machine(part), answer)
    reply = await (await signed_in(opened.cloud)).get(f"/machines/{part}/statistics/series")
    assert reply.status == 500
    assert "the answer of the machine cannot be used" in reply.json()["error"]


async def test_others_see_nothing_and_wrong_ranges_are_refused(opened: Site, part: str) -> None:
    asked = await answering(await opened.machine(part))
    other = await opened.cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", opened.cloud.cloud.clock()))
    stranger = await signed_in(opened.cloud, (other.id, other.key))
    assert (await stranger.get(f"/machines/{part}/statistics")).status == 404
    assert (await stranger.get(f"/machines/{part}/statistics/series")).status == 404
    person = await signed_in(opened.cloud)
    for wrong in ("points=x", "points=1", "from=yesterday", "from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z"):
        assert (await person.get(f"/machines/{part}/statistics/series?{wrong}")).status == 400, wrong
    assert asked == []


@pytest.mark.parametrize("asked", [b"", b"{}", b'{"from": 2, "to": 1}', b'{"from": 0, "to": 1e300}'])
async def test_the_machine_refuses_ranges_that_are_not_valid(asked: bytes) -> None:
    from grpclib.exceptions import GRPCError

    class Stream:
        async def recv_message(self) -> bytes:
            return asked

    async def never(start: int, end: int, points: int) -> dict[str, Any]:
        raise AssertionError(msgspec.json.encode((start, end, points)))

    with pytest.raises(GRPCError, match="the range of the statistics"):
        await series_handler(never).func(Stream())  # type: ignore[arg-type]
