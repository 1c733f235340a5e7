from __future__ import annotations

import gzip
import struct

import pytest
import trio
from grpclib.const import Status
from grpclib.exceptions import GRPCError
from hypothesis import given
from hypothesis import strategies as st

from rpc.inbox import Budget, Inbox


class Window:
    """The window of one stream as the peer sees it."""

    def __init__(self) -> None:
        self.given_back = 0

    def consumed(self, sid: int, n: int) -> None:
        assert n > 0
        self.given_back += n


def message(data: bytes, flag: int = 0) -> bytes:
    return struct.pack(">BI", flag, len(data)) + data


def make(**options: object) -> tuple[Inbox, Window]:
    window = Window()
    values = {"max_message": 1000, "budget": Budget(10_000), "encoding": None, **options}
    return Inbox(window, 1, **values), window


@given(st.lists(st.binary(max_size=60), max_size=12), st.lists(st.integers(1, 50), max_size=60), st.integers(0, 3))
async def test_messages_survive_any_cut_and_every_byte_comes_back(bodies: list[bytes], cuts: list[int], padding: int):
    inbox, window = make()
    wire = b"".join(map(message, bodies))
    fed = position = 0
    for cut in [*cuts, len(wire)]:
        piece = wire[position : position + cut]
        position += cut
        if piece:
            inbox.feed(piece, len(piece) + padding)
            fed += len(piece) + padding
    inbox.end()
    assert [await inbox.get() for _ in bodies] == bodies
    assert await inbox.get() is None
    assert window.given_back == fed
    assert inbox.budget.used == 0


@given(st.lists(st.binary(max_size=60), max_size=12), st.lists(st.integers(1, 50), max_size=60), st.integers(0, 70))
async def test_messages_with_their_prefix(bodies: list[bytes], cuts: list[int], large: int):
    """Messages above `large` bytes are not copied, and what follows them stays in order."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rpc.inbox.LARGE", large)
        inbox, window = make()
        wire = b"".join(map(message, bodies))
        position, received = 0, []
        for cut in [*cuts, len(wire)]:
            piece = wire[position : position + cut]
            position += cut
            if piece:
                inbox.feed(bytearray(piece), len(piece))
            if cut % 2 and inbox._head_is_complete():
                received.append(bytes(await inbox.get_framed() or b""))
        inbox.end()
        while (framed := await inbox.get_framed()) is not None:
            received.append(bytes(framed))
    assert received == list(map(message, bodies))
    assert window.given_back == len(wire)
    assert inbox.budget.used == 0


async def test_a_large_message_with_its_prefix_is_the_buffer_itself():
    inbox, _ = make(max_message=1 << 20, budget=Budget(1 << 21))
    large = message(b"x" * 100_000)
    inbox.feed(bytearray(large[:50_000]), 50_000)
    inbox.feed(bytearray(large[50_000:] + message(b"next")), len(large) - 50_000 + 9)
    buffer = inbox._buffer
    framed = await inbox.get_framed()
    assert framed is buffer
    assert framed == large
    assert await inbox.get_framed() == message(b"next")


async def test_a_compressed_message_with_its_prefix():
    inbox, _ = make(encoding="gzip")
    data = message(gzip.compress(b"hello"), 1)
    inbox.feed(data, len(data))
    assert await inbox.get_framed() == message(b"hello")


async def test_an_incomplete_message_gives_its_window_back_at_once():
    inbox, window = make()
    inbox.feed(b"\0\0\0", 3)
    assert window.given_back == 3
    inbox.feed(b"\0\x64" + b"x" * 50, 52)
    assert window.given_back == 55
    inbox.feed(b"x" * 50, 50)
    assert window.given_back == 55, "the message is complete: only a reader gives the rest back"
    assert await inbox.get() == b"x" * 100
    assert window.given_back == 105


async def test_unread_messages_keep_their_window():
    inbox, window = make()
    inbox.feed(message(b"a") * 10, 60)
    assert window.given_back == 0
    await inbox.get()
    assert window.given_back == 6


async def test_bytes_after_a_complete_message_wait_until_it_is_read():
    inbox, window = make()
    inbox.feed(message(b"a") + message(b"b" * 100)[:50], 56)
    assert window.given_back == 0
    await inbox.get()
    assert window.given_back == 6
    with trio.move_on_after(0):  # asking for the second message releases the bytes received so far
        await inbox.get()
    assert window.given_back == 56


async def test_many_empty_messages_cost_what_they_cost_on_the_wire():
    inbox, _ = make(budget=Budget(1 << 20))
    inbox.feed(message(b"") * 100_000, 500_000)
    assert inbox.budget.used == 500_000
    assert len(inbox._buffer) == 500_000
    for _ in range(100_000):
        assert await inbox.get() == b""


async def test_a_reader_waits_and_is_woken(autojump_clock: trio.testing.MockClock):
    inbox, _ = make()
    got: list[bytes | None] = []

    async def read() -> None:
        got.append(await inbox.get())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await trio.testing.wait_all_tasks_blocked()
        inbox.feed(message(b"hello")[:3], 3)
        await trio.testing.wait_all_tasks_blocked()
        assert not got
        inbox.feed(message(b"hello")[3:], 7)
    assert got == [b"hello"]


async def test_a_cancelled_reader_leaves_the_inbox_usable(autojump_clock: trio.testing.MockClock):
    inbox, _ = make()
    with trio.move_on_after(1):
        await inbox.get()
    inbox.feed(message(b"x"), 6)
    assert await inbox.get() == b"x"


async def test_two_readers_are_a_mistake():
    inbox, _ = make()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(inbox.get)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(trio.BusyResourceError):
            await inbox.get()
        inbox.end()


async def refused(inbox: Inbox) -> Status:
    with pytest.raises(GRPCError) as caught:
        await inbox.get()
    return caught.value.status


async def test_a_large_message_is_refused_by_its_prefix():
    inbox, window = make()
    inbox.feed(message(b"x" * 1001)[:5], 5)
    assert await refused(inbox) is Status.RESOURCE_EXHAUSTED
    inbox.feed(b"x" * 500, 500)
    assert window.given_back == 505, "the peer may go on sending into the void"
    assert inbox.budget.used == 0


async def test_the_largest_message_passes():
    inbox, _ = make()
    inbox.feed(message(b"x" * 1000), 1005)
    assert await inbox.get() == b"x" * 1000


async def test_the_budget_of_a_connection_is_shared():
    budget = Budget(1000)
    first, _ = make(budget=budget)
    two, _ = make(budget=budget)
    first.feed(message(b"x" * 600), 605)
    two.feed(message(b"x" * 600), 605)
    assert await refused(two) is Status.RESOURCE_EXHAUSTED
    assert budget.used == 605
    assert await first.get() == b"x" * 600
    assert budget.used == 0


async def test_gzip():
    inbox, _ = make(encoding="gzip")
    for body, flag in ((gzip.compress(b"hello" * 20), 1), (b"plain", 0)):
        inbox.feed(message(body, flag), len(body) + 5)
    assert await inbox.get() == b"hello" * 20
    assert await inbox.get() == b"plain"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (gzip.compress(b"x" * 1001), Status.RESOURCE_EXHAUSTED),
        (gzip.compress(bytes(50_000_000)[:900_000]), Status.RESOURCE_EXHAUSTED),
        (b"no gzip at all", Status.INTERNAL),
        (gzip.compress(b"hello")[:-9], Status.INTERNAL),
    ],
)
async def test_bad_gzip(body: bytes, status: Status):
    inbox, _ = make(encoding="gzip", max_message=1000)
    inbox.feed(message(body, 1), len(body) + 5)
    assert await refused(inbox) is status


@pytest.mark.parametrize(("flag", "encoding"), [(1, None), (2, "gzip"), (128, None)])
async def test_unannounced_flags(flag: int, encoding: str | None):
    inbox, _ = make(encoding=encoding)
    inbox.feed(message(b"x", flag), 6)
    assert await refused(inbox) is Status.INTERNAL


async def test_cut_off():
    inbox, _ = make()
    inbox.feed(message(b"abc")[:-1], 7)
    inbox.end()
    assert await refused(inbox) is Status.INTERNAL
    assert await refused(inbox) is Status.INTERNAL
