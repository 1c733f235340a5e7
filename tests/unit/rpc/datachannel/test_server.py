"""Calls of a client that sends envelopes itself: format, order, fairness, identity, draining and the end."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import trio
from grpclib.const import Status
from grpclib.exceptions import GRPCError, StreamTerminatedError
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest as Request
from trio.testing import wait_all_tasks_blocked

from rpc.access.forwarded import Proxies, parse_network
from rpc.carrier import Identity, Peer
from rpc.limits import Limits
from rpc.peers.port import MAX_MESSAGE
from rpc.turns import Flow
from tests.unit.rpc.datachannel.raw import HELLO, E, half_close, headers, packet, raw, reset, stream
from tests.unit.rpc.echo import channel_rig

CALLER = Identity("caller", "api-key")


def refuses(method: str, metadata: Any) -> Identity | None:
    """Know the token "other" only."""
    if metadata.get("authorization") == "Bearer other":
        return Identity("other")
    raise GRPCError(Status.UNAUTHENTICATED, "who are you?")


async def test_a_reply_in_the_bytes_of_the_wire() -> None:
    """The format is fixed: these bytes were encoded by hand from the definition of the messages."""
    received: list[bytes] = []
    async with raw(reading=False) as client:
        hello = b"\x0a\x05hello"
        head = b"\x0a\x19/test.v1.EchoService/Echo"
        await client.send(b"\x0a\x02\x08\x07\x12" + bytes([len(head)]) + head)
        await client.send(b"\x0a\x02\x08\x07\x1a\x11\x08\x01\x12\x0b\x0a\x07" + hello + b"\x10\x01\x18\x01")
        for _ in range(3):
            data = await client.channel.receive()
            assert isinstance(data, bytes)
            received.append(data)
    assert received == [
        b"\x0a\x02\x08\x07\x12\x00",
        b"\x0a\x02\x08\x07\x1a\x0d\x0a\x0b\x0a\x07" + hello + b"\x10\x01",
        b"\x0a\x02\x08\x07\x22\x02\x0a\x00",
    ]


@pytest.mark.parametrize("sid", [0, 1, 2**32, 2**64 - 1])
async def test_every_id_is_valid_and_may_be_used_again_after_its_call(sid: int) -> None:
    async with raw() as client:
        for _ in range(2):
            await client.send(headers(sid), packet(sid))
            await wait_all_tasks_blocked()
            assert client.kinds(sid) == ["headers", "message", "trailers"]
            assert client.texts(sid) == ["hello"]
            del client.responses[sid]


async def test_the_end_of_a_request_in_its_forms() -> None:
    """In the last packet; after it; on each packet of the last message; and of a request without messages."""
    async with raw() as client:
        await client.send(headers(1, "Collect"), packet(1))
        await client.send(headers(2, "Collect"), packet(2, eos=False), half_close(2))
        await client.send(headers(3, "Collect"), packet(3, HELLO[:2], eom=False), packet(3, HELLO[2:]))
        await client.send(headers(4, "Collect"), half_close(4))
        await client.send(headers(5, "Collect"), packet(5, b"", eos=False), packet(5, b""))
        await wait_all_tasks_blocked()
        assert [client.texts(sid) for sid in range(1, 6)] == [["5"], ["5"], ["5"], ["0"], ["0"]]


async def test_an_empty_reply_is_a_message() -> None:
    async with raw() as client:
        await client.send(headers(1), packet(1, b""))
        await wait_all_tasks_blocked()
        (reply,) = [each.message for each in client.responses[1] if each.WhichOneof("type") == "message"]
        assert reply.packet_message == E.PacketMessage(eom=True)


@pytest.mark.parametrize(
    ("timeout", "metadata", "seconds"),
    [
        ({"seconds": 2, "nanos": 500_000_000}, {}, 2.5),
        ({"nanos": 1}, {}, 0),
        ({"seconds": -5}, {}, 0),
        ({"seconds": 2}, {"grpc-timeout": ["9S"]}, 2),
        ({}, {"grpc-timeout": ["9S"]}, 9),
        ({}, {}, None),
        ({"seconds": 2**62}, {}, None),
    ],
)
async def test_deadlines(
    timeout: dict[str, int],
    metadata: dict[str, list[str]],
    seconds: float | None,
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with raw() as client:
        await client.send(headers(1, "Hang", metadata, timeout=timeout), packet(1))
        with trio.move_on_after(1_000):
            await client.end_of(1)
        assert client.status(1) is (None if seconds is None else Status.DEADLINE_EXCEEDED)
        assert trio.current_time() == pytest.approx(1_000 if seconds is None else seconds, abs=0.1)


async def test_a_reset_cancels_the_call_and_is_answered() -> None:
    async with raw() as client:
        await client.send(headers(1, "Hang"), packet(1), reset(1))
        await client.service.cancelled.wait()
        await wait_all_tasks_blocked()
        assert client.kinds(1) == ["headers", "trailers"]
        assert client.status(1) is Status.CANCELLED
        assert client.core.statistics.cancelled_calls == 1


async def test_metadata_of_requests_and_replies() -> None:
    async with raw() as client:
        sent = {"Word": ["a", "b"], "data-bin": ["AAH/"], "content-type": ["x"], "grpc-encoding": ["br"]}
        await client.send(headers(1, "Echo", sent), packet(1))
        await client.send(headers(2, "Fail"), packet(2, Request(host="trailing").SerializeToString()))
        await client.send(headers(3, "Fail"), packet(3, Request(host="grpc").SerializeToString()))
        await wait_all_tasks_blocked()
        metadata = client.service.seen[0].metadata
        assert sorted(metadata.items(), key=str) == [("data-bin", b"\0\1\xff"), ("word", "a"), ("word", "b")]
        head, trailers = client.responses[2]
        assert dict(head.headers.metadata.md)["data-bin"].values == ["AP8"]
        assert dict(trailers.trailers.metadata.md)["last"].values == ["2"]
        status = client.responses[3][-1].trailers.status
        assert (status.code, status.message) == (
            Status.NOT_FOUND.value,
            "nö 100% ",
        )  # ended by a line end, which becomes a space
        assert [detail.type_url.rpartition(".")[2] for detail in status.details] == ["ServerReflectionResponse"]


async def test_an_error_that_does_not_fit_is_cut_off() -> None:
    async def fails(stream: Any) -> None:
        raise GRPCError(Status.NOT_FOUND, "€" * 100_000, [Request(host="x" * 100_000)])

    async with channel_rig() as first:
        path = "/test.v1.EchoService/Echo"
        first.core.router[path] = first.core.router[path]._replace(func=fails)
        with pytest.raises(GRPCError) as caught:
            await first.stub.Echo(Request())
        assert (caught.value.status, caught.value.details) == (Status.NOT_FOUND, None)
        assert caught.value.message == "€" * 8192


async def test_metadata_that_does_not_fit_is_an_error_of_the_method(caplog: pytest.LogCaptureFixture) -> None:
    async def talkative(stream: Any) -> None:
        await stream.send_initial_metadata(metadata={"word": "x" * MAX_MESSAGE})

    async with channel_rig() as first:
        path = "/test.v1.EchoService/Echo"
        first.core.router[path] = first.core.router[path]._replace(func=talkative)
        with pytest.raises(GRPCError) as caught:
            await first.stub.Echo(Request())
        assert caught.value.status is Status.INTERNAL
        caplog.clear()


# Identity and peer


async def test_the_identity_of_the_channel_holds_whatever_a_request_sends() -> None:
    async with raw(identity=CALLER, authorize=refuses) as client:
        for sid, metadata in ((1, {}), (2, {"authorization": ["Bearer other"]}), (3, {"authorization": ["?"]})):
            await client.send(headers(sid, "Echo", metadata), packet(sid))
        await wait_all_tasks_blocked()
        assert [call.identity for call in client.service.seen] == [CALLER] * 3


async def test_without_an_identity_each_call_is_authorized() -> None:
    async with raw(authorize=refuses) as client:
        await client.send(headers(1), packet(1))
        await client.send(headers(2, "Echo", {"authorization": ["Bearer other"]}), packet(2))
        await wait_all_tasks_blocked()
        assert client.status(1) is Status.UNAUTHENTICATED
        assert [call.identity.entity for call in client.service.seen] == ["other"]


async def test_the_peer_is_never_local_and_no_proxy() -> None:
    for address in (("127.0.0.1", 4), ("::1", 4), "/run/socket", ("10.0.0.7", 4), None):
        proxies = Proxies((parse_network("10.0.0.0/8"), parse_network("127.0.0.0/8")))
        async with channel_rig(peer=Peer(address, {"subject": "x"}), proxies=proxies) as first:
            await first.stub.Echo(Request(), metadata={"x-forwarded-for": "127.0.0.9"})
            peer = first.service.seen[0].peer
            assert peer.local is False
            assert (peer.addr(), peer.cert()) == (address, None)


async def test_handlers_reach_the_streams_of_the_connection() -> None:
    media = object()
    async with channel_rig(peer=Peer(media=media)) as first:
        await first.stub.Echo(Request())
        assert first.service.seen[0].peer.media is media


async def test_the_end_of_the_channel_is_the_farewell_of_the_peer() -> None:
    for local in (False, True):
        peer = Peer()
        async with channel_rig(peer=peer) as first:
            await first.stub.Echo(Request())
            if local:
                first.connection.close()
            else:
                first.ends[0].close()
            await wait_all_tasks_blocked()
            assert first.service.seen[0].peer.farewell.said is not local


# Limits that calls in order do not reach


async def test_a_call_that_reads_may_receive_any_amount() -> None:
    async with raw(limits=Limits(max_message=100_000, stream_window=10_000, max_buffered=200_000)) as client:
        data = Request(host="x" * 50_000).SerializeToString()
        await client.send(headers(1, "Collect"))
        for _ in range(100):
            await client.send(packet(1, data, eos=False))
            await wait_all_tasks_blocked()
        await client.send(half_close(1))
        await wait_all_tasks_blocked()
        assert client.texts(1) == ["5000000"]


async def test_calls_that_clean_up_are_limited_and_keep_no_id() -> None:
    done = trio.Event()

    async def cleans_up(stream: Any) -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await done.wait()

    async with raw(limits=Limits(max_streams=2)) as client:
        path = "/test.v1.EchoService/Hang"
        assert isinstance(client.core.router, dict)
        client.core.router[path] = client.core.router[path]._replace(func=cleans_up)
        for sid in (1, 2):
            await client.send(headers(sid, "Hang"), reset(sid))
        await wait_all_tasks_blocked()
        del client.responses[1]
        await client.send(headers(1, "Collect"), headers(4, "Hang"), headers(5, "Hang"))
        await wait_all_tasks_blocked()
        assert (client.connection.running, client.status(5)) == (4, Status.RESOURCE_EXHAUSTED)
        await client.send(reset(4), headers(6, "Hang"))
        await wait_all_tasks_blocked()
        assert client.status(6) is Status.RESOURCE_EXHAUSTED, "twice the limit, with those that clean up"
        done.set()
        await wait_all_tasks_blocked()
        await client.send(packet(1))
        await wait_all_tasks_blocked()
        assert client.texts(1) == ["5"], "the end of the call that had this id before does not end this one"


class AnotherConnection:
    """Idle connection of a server."""

    def drain(self) -> None:
        """Do nothing: there are no calls."""


async def test_calls_start_in_the_turn_of_their_channel() -> None:
    async with raw() as client:
        another = AnotherConnection()
        client.core.admit(another)  # calls take turns only if the server has several connections
        await client.core.turns.begin(Flow())
        await client.send(headers(1), packet(1))
        await wait_all_tasks_blocked()
        assert client.status(1) is None
        await client.core.turns.end()
        await wait_all_tasks_blocked()
        assert client.texts(1) == ["hello"]
        client.core.leave(another)


# Fairness and the end


async def test_a_large_reply_does_not_delay_a_small_one(autojump_clock: trio.testing.MockClock) -> None:
    """Large replies of 4 calls are under way at 1 MB/s: what is buffered goes first, then 1 packet of each."""
    async with raw(rate=1_000_000) as client:
        large = Request(host="1,3000000").SerializeToString()
        await client.send(*[part for sid in range(1, 5) for part in (headers(sid, "Many"), packet(sid, large))])
        await wait_all_tasks_blocked()
        await trio.sleep(3)
        before = [len(client.responses[sid]) for sid in range(1, 5)]
        await client.send(headers(9), packet(9))
        begin = trio.current_time()
        ahead = client.connection.channel.buffered
        await client.end_of(9)
        late = (trio.current_time() - begin) * 1_000_000 - ahead
        assert late < 8 * MAX_MESSAGE
        counts = [len(client.responses[sid]) - earlier for sid, earlier in enumerate(before, 1)]
        assert max(counts) - min(counts) <= 2, "each call sends one packet in turn"


async def test_a_channel_that_ends_under_replies_is_quiet(
    caplog: pytest.LogCaptureFixture, autojump_clock: trio.testing.MockClock
) -> None:
    async def call(errors: list[Status]) -> None:
        with pytest.raises(GRPCError) as caught:
            await first.stub.Many(Request(host="1,9000000"))
        errors.append(caught.value.status)

    for end in range(2):
        async with channel_rig(rate=1_000_000) as first, trio.open_nursery() as nursery:
            errors: list[Status] = []
            for _ in range(3):
                nursery.start_soon(call, errors)
            await trio.sleep(2)
            first.ends[end].close()
            await trio.sleep(3)  # what was queued is still delivered
            assert errors == [Status.UNAVAILABLE] * 3
            assert first.core.statistics.cancelled_calls == 3
            assert first.core.statistics.open_connections == 0
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


async def test_the_end_of_the_channel_cancels_calls_that_send_nothing() -> None:
    async with raw() as client:
        await client.send(headers(1, "Hang"), packet(1))
        await client.service.started.wait()
        client.channel.close()
        await client.service.cancelled.wait()
        await wait_all_tasks_blocked()
        assert client.core.statistics.cancelled_calls == 1
        assert client.core.statistics.open_connections == 0


async def test_a_reply_that_is_cancelled_inside_is_not_ok(autojump_clock: trio.testing.MockClock) -> None:
    async def gives_up(stream: Any) -> None:
        with trio.move_on_after(2):
            await stream.send_message(reply)
        with pytest.raises(StreamTerminatedError):
            await stream.send_message(reply)

    async with channel_rig(rate=1_000_000) as first:
        path = "/test.v1.EchoService/Many"
        handler = first.core.router[path]
        reply = handler.reply_type(valid_host="x" * 5_000_000)
        first.core.router[path] = handler._replace(func=gives_up)
        with pytest.raises(GRPCError) as caught:
            await first.stub.Many(Request())
        assert caught.value.status is Status.CANCELLED
        assert "cut off" in str(caught.value.message)


async def test_a_reply_too_large_for_data_channels_is_refused() -> None:
    async with channel_rig() as first:
        with pytest.raises(GRPCError) as caught:
            await first.stub.Many(Request(host=f"1,{33 << 20}"))
        assert caught.value.status is Status.RESOURCE_EXHAUSTED
        assert "limit of data channels" in str(caught.value.message)


async def test_draining_refuses_new_calls_and_closes_after_the_last(autojump_clock: trio.testing.MockClock) -> None:
    async with raw() as client:
        await client.send(headers(1, "Unread"), packet(1))
        await client.service.started.wait()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.core.drain)
            await wait_all_tasks_blocked()
            await client.send(headers(2), packet(2))
            await wait_all_tasks_blocked()
            assert client.status(2) is Status.UNAVAILABLE
            assert not client.ended
            client.service.gate.set()
        await wait_all_tasks_blocked()
        assert client.texts(1) == ["5"]
        assert client.ended


async def test_a_cancelled_server_ends_its_calls_with_unavailable() -> None:
    async with channel_rig() as first, trio.open_nursery() as nursery:
        errors = []

        async def call() -> None:
            with pytest.raises(GRPCError) as caught:
                await first.stub.Hang(Request())
            errors.append((caught.value.status, caught.value.message))

        nursery.start_soon(call)
        await first.service.started.wait()
        first.serving.cancel()
        await wait_all_tasks_blocked()
        assert errors == [(Status.UNAVAILABLE, "the server is shutting down")]


async def test_a_full_server_admits_no_channel() -> None:
    async with raw(limits=Limits(max_connections=0)) as client:
        await wait_all_tasks_blocked()
        assert client.ended
        assert client.core.statistics.refusals == {"connections": 1}


async def test_the_streams_of_late_envelopes_are_ignored() -> None:
    async with raw() as client:
        await client.send(headers(1), packet(1))
        await wait_all_tasks_blocked()
        await client.send(packet(1), half_close(1), reset(1), bytes(E.Request(stream=stream(1)).SerializeToString()))
        await wait_all_tasks_blocked()
        assert client.kinds(1) == ["headers", "message", "trailers"]
