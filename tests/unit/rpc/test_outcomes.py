"""Outcomes and log messages of calls that are cancelled from outside."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import trio
import trio.testing
from grpclib.const import Cardinality, Handler, Status
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest as Request
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionResponse as Reply

from rpc.call import ServerCore, accept
from rpc.carrier import Headers, Peer
from rpc.inbox import Budget
from rpc.server_call import LARGE_REPLY, ServerCall
from rpc.turns import Flow


class Paper:
    """A carrier that records what it is asked to send."""

    def __init__(self) -> None:
        self.peer = Peer()
        self.budget = Budget(1000)
        self.flow = Flow()
        self.sent: list[Any] = []

    def send_headers(self, sid: int, extra: Headers) -> None:
        self.sent.append("headers")

    async def send_message(self, sid: int, data: bytes) -> None:
        self.sent.append("message")

    def send_trailers(self, sid: int, status: int, extra: Headers, *, headers_sent: bool) -> None:
        self.sent.append(Status(status))

    def reset(self, sid: int, code: int) -> None:
        self.sent.append(f"reset {code}")

    def consumed(self, sid: int, n: int) -> None:
        pass

    def forget(self, sid: int) -> None:
        self.sent.append("forgotten")


def call_of(func: Any, *extra: tuple[str, str]) -> tuple[Paper, ServerCall]:
    core = ServerCore({"/s/M": Handler(func, Cardinality.UNARY_UNARY, Request, Reply)})
    paper = Paper()
    head = [(":method", "POST"), (":path", "/s/M"), ("content-type", "application/grpc"), *extra]
    call = accept(paper, 1, head, core)
    assert isinstance(call, ServerCall)
    return paper, call


async def waits(stream: Any) -> None:
    await trio.sleep_forever()


async def tidies_up(stream: Any) -> None:
    """Complete a shielded cleanup, then return normally although the call was cancelled."""
    with trio.CancelScope(shield=True):
        await trio.sleep(5)


async def forgets(stream: Any) -> None:
    """Return without a reply, which is a mistake."""


def errors_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("func", [waits, tidies_up])
async def test_cancelled_from_outside(
    func: Any, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
):
    paper, call = call_of(func)
    with trio.move_on_after(1):
        await call.run()
    assert paper.sent == [Status.UNAVAILABLE, "forgotten"]
    assert errors_of(caplog) == []


@pytest.mark.parametrize("func", [waits, tidies_up])
async def test_cancelled_by_its_time_limit(
    func: Any, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
):
    paper, call = call_of(func, ("grpc-timeout", "1S"))
    await call.run()
    assert paper.sent == [Status.DEADLINE_EXCEEDED, "forgotten"]
    assert errors_of(caplog) == []


@pytest.mark.parametrize("func", [waits, tidies_up])
@pytest.mark.parametrize("early", [True, False])
async def test_cancelled_by_its_peer(
    func: Any, early: bool, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
):
    paper, call = call_of(func)
    async with trio.open_nursery() as nursery:
        if early:
            call.cancel_by_peer()
        nursery.start_soon(call.run)
        await trio.testing.wait_all_tasks_blocked()
        call.cancel_by_peer()
    assert paper.sent == ["forgotten"]
    assert errors_of(caplog) == []


async def test_a_handler_that_forgets_its_reply_is_a_mistake(caplog: pytest.LogCaptureFixture):
    paper, call = call_of(forgets)
    await call.run()
    assert paper.sent == [Status.INTERNAL, "forgotten"]
    assert errors_of(caplog) == ["/s/M returned without a reply"]


async def test_a_handler_may_abort_its_call(caplog: pytest.LogCaptureFixture):
    async def aborts(stream: Any) -> None:
        await stream.cancel()

    paper, call = call_of(aborts)
    await call.run()
    assert paper.sent == ["reset 8", "forgotten"]
    assert errors_of(caplog) == []


async def test_a_large_reply_is_encoded_and_sent_in_two_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    for size, expected in ((10, ["headers", "message"]), (LARGE_REPLY, ["others run", "headers", "message"])):
        reply = Reply(valid_host="x" * size)

        async def answers(stream: Any, reply: Any = reply) -> None:
            await stream.send_message(reply)

        paper, call = call_of(answers)

        async def others_run(paper: Paper = paper) -> None:
            paper.sent.append("others run")

        monkeypatch.setattr(trio.lowlevel, "checkpoint", others_run)
        await call.run()
        assert paper.sent[:-2] == expected
