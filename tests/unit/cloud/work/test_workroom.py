"""Work on tenants' documents in threads, in turn among organizations; and pages of very large documents."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import Any

import pytest
import trio

from cloud.documents.pieces import SMALL, dumps, loads
from cloud.editing import review
from cloud.server.memory import MemoryCloud
from cloud.values.limits import WORK_QUEUE
from cloud.work import workroom
from cloud.work.workroom import THREADS, Workroom
from schema.errors import MachineError
from tests.unit.cloud.pages import signed_in


class Held:
    """Work that waits until `go` is set."""

    def __init__(self) -> None:
        self.begun = 0
        self.go = threading.Event()

    def __call__(self) -> int:
        self.begun += 1
        assert self.go.wait(30)
        return self.begun


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - threads signal no events
        await trio.sleep(0.001)


async def test_an_organization_has_one_thread_even_for_abandoned_work() -> None:
    room, held = Workroom(), Held()
    with trio.fail_after(30):
        async with room.opened(), trio.open_nursery() as nursery:
            try:
                with trio.CancelScope() as left:
                    async with trio.open_nursery() as inner:
                        inner.start_soon(room.run, "a", held)
                        inner.start_soon(room.run, "a", held)
                        await until(lambda: held.begun == 1)
                        left.cancel()
                nursery.start_soon(room.run, "a", held)
                assert await room.run("b", lambda: 7) == 7
                assert held.begun == 1  # the second was cancelled before it began, and the third waits for the first
            finally:
                held.go.set()
    assert held.begun == 2


async def test_a_line_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    room, held = Workroom(), Held()
    with trio.fail_after(30):
        async with room.opened(), trio.open_nursery() as nursery:
            try:
                for _ in range(WORK_QUEUE.value + 1):
                    nursery.start_soon(room.run, "a", held)
                await until(lambda: held.begun == 1)
                with pytest.raises(MachineError, match="`work_queue`"):
                    await room.run("a", held)
                assert await room.run("b", lambda: 1) == 1
            finally:
                held.go.set()
    assert THREADS > workroom.EACH


async def test_an_error_leaves_the_thread_free() -> None:
    room = Workroom()
    async with room.opened():
        for _ in range(THREADS + 1):
            with pytest.raises(ZeroDivisionError):
                await room.run("a", lambda: 1 / 0)


@pytest.mark.parametrize("text", ['{"a": 1', '{"a": NaN}', "[" * 100_000, '{"a": 1} x', "", '"\\ud800'])
def test_invalid_json_is_refused_in_pieces_too(text: str) -> None:
    with pytest.raises((ValueError, RecursionError)):
        loads(text + " " * 100_000)


def test_large_json_is_read_and_written_unchanged() -> None:
    entries = [{"x": number / 3, "y": "ü" * 100, "z": 2**70, "n": None} for number in range(2000)]
    document = {"a": entries, "t": "é" * 99_999}
    assert loads(json.dumps(document)) == loads(dumps(document)) == document
    assert loads(json.dumps(document, indent=2)) == document


@pytest.mark.parametrize("value", [{"x": [1.5] * 60_000}, {"x": {str(number): [] for number in range(60_000)}}])
def test_many_small_values_are_decoded_at_once(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, read = [], json.loads
    monkeypatch.setattr("cloud.documents.pieces.json.loads", lambda text: (calls.append(len(text)), read(text))[1])
    assert loads(json.dumps(value)) == value
    assert len(calls) < 100
    assert max(calls) <= SMALL + 2


def test_texts_with_many_equal_lines_are_compared_quickly() -> None:
    old = {"x": [[number % 7] * 80 for number in range(300)]}
    new = {"x": [[number % 7 + 1] * 80 for number in range(299)]}
    result = review.review(old, new)
    assert result.long
    assert not result.lines
    assert result
    assert review.review(old, {**old, "y": 1}).lines


def large(entries: int) -> str:
    """Return a document with this many components: 1,900 are near the limits, with 3.9 MiB and 90,000 values."""
    entry = {"api": "rdk:component:sensor", "model": "rdk:builtin:fake", "attributes": {"values": [1.5] * 40}}
    return json.dumps(
        {"components": [{"name": f"c{number}", **entry, "notes": "x" * 1700} for number in range(entries)]}
    )


async def calls_on_the_loop(function: Callable[[], Awaitable[object]]) -> int:
    """Return how many Python functions the event-loop thread calls meanwhile, without those of Trio."""
    calls = 0

    def profile(frame: FrameType, event: str, _what: Any) -> None:
        nonlocal calls
        calls += event == "call" and not frame.f_globals.get("__name__", "").startswith("trio.")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        await function()
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.parametrize("page", ["config", "history"])
async def test_pages_of_a_large_document_do_not_block_the_event_loop(cloud: MemoryCloud, part: str, page: str) -> None:
    """Large pages are rendered in the workroom, so their size must not affect the event loop."""
    person, bodies = await signed_in(cloud), list[bytes]()

    async def get() -> None:
        reply = await person.get(f"/machines/{part}/{page}")
        assert reply.status == 200
        bodies.append(reply.body)

    calls = []
    for entries in (25, 250):
        await cloud.app("update_robot_part", id=part, robot_config_json=large(entries))
        calls.append(await calls_on_the_loop(get))
    assert len(bodies[1]) > 5 * len(bodies[0])
    assert calls[1] < 1.5 * calls[0], "1,200 and 1,200; made on the loop, a page of 250 entries takes 500,000"
