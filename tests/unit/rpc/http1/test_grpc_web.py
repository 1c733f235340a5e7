"""gRPC-Web over HTTP/1.1 on memory streams."""

from __future__ import annotations

import base64

import pytest
import trio
import trio.testing
from google.protobuf.wrappers_pb2 import StringValue
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from rpc.carrier import Identity
from rpc.limits import Limits
from tests.unit.rpc.http1.support import PEER, Response, frame, serving

WEB = ("content-type", "application/grpc-web+proto")


async def test_unary() -> None:
    async with serving() as server:
        response = await server.connect().call("unary", "hello")
        assert response.status == 200
        assert response.headers["content-type"] == "application/grpc-web+proto"
        assert response.headers["transfer-encoding"] == "chunked"
        assert response.values == ["hello"]
        assert response.frames[-1] == (0x80, b"grpc-status: 0\r\n")


async def test_many_calls_use_one_connection() -> None:
    async with serving() as server:
        client = server.connect()
        for number in range(5):
            assert (await client.call("unary", str(number))).values == [str(number)]
        assert server.core.statistics.calls == 5
        assert server.core.statistics.connections == 1


async def test_server_stream() -> None:
    async with serving() as server:
        assert (await server.connect().call("many", "100")).values == [str(number) for number in range(100)]


async def test_several_requests_in_one_body() -> None:
    async with serving() as server:
        assert (await server.connect().call("collect", "a", "b", "c")).values == ["a,b,c"]


async def test_an_error_is_only_a_head_with_an_encoded_message() -> None:
    async with serving() as server:
        response = await server.connect().call("fail", "x")
        assert response.status == 200
        assert response.body == b""
        assert response.headers["grpc-status"] == "5"
        assert response.headers["grpc-message"] == "no motor called gr%C3%B6%C3%9Fer%0A"


async def test_unknown_method_leaves_the_connection_usable() -> None:
    async with serving() as server:
        client = server.connect()
        assert (await client.call("nothing", "x")).trailers["grpc-status"] == "12"
        assert (await client.call("unary", "y")).values == ["y"]


async def test_text_in_and_out() -> None:
    async with serving() as server:
        response = await server.connect().call("many", "3", text=True)
        assert response.headers["content-type"] == "application/grpc-web-text+proto"
        pieces = response.body
        decoded = b""
        while pieces:  # each flush is padded separately
            end = len(pieces) if b"=" not in pieces else (pieces.index(b"=") | 3) + 1
            decoded += base64.b64decode(pieces[:end])
            pieces = pieces[end:]
        assert Response(200, {}, decoded).values == ["0", "1", "2"]


async def test_text_padded_in_the_middle_and_cut_anywhere() -> None:
    async with serving() as server:
        body = b"".join(base64.b64encode(frame(StringValue(value=v).SerializeToString())) for v in ("a", "bc", "def"))
        assert b"=" in body[:-2]
        client = server.connect()
        head = b"POST /test.Echo/collect HTTP/1.1\r\nhost: x\r\ncontent-type: application/grpc-web-text\r\n"
        await client.stream.send_all(head + b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body))
        for index in range(len(body)):
            await client.stream.send_all(body[index : index + 1])
            await trio.testing.wait_all_tasks_blocked()
        assert b"200 OK" in await client.rest()
    assert server.core.statistics.failed_calls == 0


@pytest.mark.parametrize("body", [b"AAA", b"AA!A", b"A===", b"AAAAA"])
async def test_text_that_is_not_base64_is_refused(body: bytes) -> None:
    async with serving() as server:
        fields = [("content-type", "application/grpc-web-text")]
        response = await server.connect().request("POST", "/test.Echo/unary", fields, body)
        assert response.trailers["grpc-status"] == "3"
        assert server.methods.events == []


async def test_deadline(autojump_clock: trio.testing.MockClock) -> None:
    async with serving() as server:
        before = trio.current_time()
        response = await server.connect().call("hang", "x", headers=[("grpc-timeout", "250m")])
        assert response.trailers["grpc-status"] == "4"
        assert trio.current_time() - before == pytest.approx(0.25)
        assert server.methods.cancelled.is_set()


def post(method: str, length: int) -> bytes:
    head = f"POST /test.Echo/{method} HTTP/1.1\r\nhost: x\r\ncontent-type: application/grpc-web\r\n"
    return f"{head}content-length: {length}\r\n\r\n".encode()


async def test_peer_that_goes_away_cancels_its_call() -> None:
    async with serving() as server:
        client = server.connect()
        await client.stream.send_all(post("hang", 5) + frame(b""))
        await server.methods.hanging.wait()
        await trio.testing.wait_all_tasks_blocked()  # the head is written: only reading notices the end
        await client.stream.aclose()
        await trio.testing.wait_all_tasks_blocked()
        assert server.methods.cancelled.is_set()
        assert server.core.statistics.cancelled_calls == 1
        assert server.core.statistics.open_connections == 0


async def test_peer_that_goes_away_within_its_request_cancels_the_call() -> None:
    async with serving() as server:
        client = server.connect()
        await client.stream.send_all(post("unary", 9) + b"\0\0")
        await trio.testing.wait_all_tasks_blocked()
        await client.stream.aclose()
        await trio.testing.wait_all_tasks_blocked()
        assert server.core.statistics.cancelled_calls == 1
        assert server.methods.events == []


async def test_a_peer_that_does_not_read_holds_the_handler_then_loses_the_connection(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with serving() as server:
        client = server.connect(trio.testing.lockstep_stream_pair())
        await client.stream.send_all(post("flood", 5) + frame(b""))
        before = trio.current_time()
        await server.methods.cancelled.wait()
        assert trio.current_time() - before == pytest.approx(server.core.limits.write_stall)


async def test_a_handler_that_does_not_read_holds_the_sender() -> None:
    async with serving(core_limits=Limits(stream_window=1000)) as server:
        client = server.connect(trio.testing.lockstep_stream_pair())
        body = frame(StringValue(value="x" * 900).SerializeToString()) * 50
        await client.stream.send_all(post("hang", len(body)))
        sent = 0

        async def send() -> None:
            nonlocal sent
            for start in range(0, len(body), 500):
                await client.stream.send_all(body[start : start + 500])
                sent += 500

        server.nursery.start_soon(send)
        await trio.testing.wait_all_tasks_blocked()
        assert 1000 <= sent < 5000


async def test_a_message_larger_than_the_window_arrives() -> None:
    async with serving(core_limits=Limits(stream_window=1000)) as server:
        value = "y" * 100_000
        assert (await server.connect().call("unary", value)).values == [value]


async def test_a_message_above_the_limit_is_refused() -> None:
    async with serving(core_limits=Limits(max_message=1000)) as server:
        assert (await server.connect().call("unary", "z" * 2000)).trailers["grpc-status"] == "8"


async def test_metadata_without_what_belongs_to_http() -> None:
    async with serving() as server:
        extra = [("viam_client", "typescript;v1"), ("cookie", "a=b"), ("origin", "http://x"), ("viam-sid", "7")]
        await server.connect().call("unary", "m", headers=extra)
        assert server.methods.metadata == [{"viam_client": "typescript;v1", "viam-sid": "7", "x-grpc-web": "1"}]


async def test_authorization() -> None:
    seen = []

    def authorize(method: str, metadata: object) -> Identity | None:
        seen.append(method)
        if "authorization" not in metadata:  # type: ignore[operator]
            raise GRPCError(Status.UNAUTHENTICATED, "who are you?")
        return Identity("me")

    async with serving(authorize=authorize) as server:
        client = server.connect()
        refused = await client.call("unary", "a", headers=[("origin", "http://page")])
        assert refused.trailers == {"grpc-status": "16", "grpc-message": "who are you?"}
        assert refused.headers["access-control-allow-origin"] == "http://page"
        assert (await client.call("unary", "b", headers=[("authorization", "Bearer x")])).values == ["b"]
        assert server.methods.events == ["b"]
        assert seen == ["/test.Echo/unary"] * 2


async def test_cross_origin() -> None:
    async with serving() as server:
        client = server.connect()
        asked = "content-type,x-grpc-web,viam_client,viam-sid,rpc-host,grpc-timeout,dtname,authorization,x-user-agent"
        preflight = await client.request(
            "OPTIONS",
            "/test.Echo/unary",
            [
                ("origin", "https://page.example"),
                ("access-control-request-method", "POST"),
                ("access-control-request-headers", asked),
            ],
        )
        assert preflight.status == 204
        assert preflight.headers["access-control-allow-origin"] == "https://page.example"
        assert "POST" in preflight.headers["access-control-allow-methods"]
        assert preflight.headers["access-control-allow-headers"] == asked
        assert int(preflight.headers["access-control-max-age"]) > 0
        response = await client.call("unary", "x", headers=[("origin", "https://page.example")])
        assert response.headers["access-control-allow-origin"] == "https://page.example"
        exposed = response.headers["access-control-expose-headers"]
        assert {"grpc-status", "grpc-message", "grpc-status-details-bin"} <= set(exposed.split(", "))
        assert "access-control-allow-credentials" not in response.headers


@pytest.mark.parametrize(
    ("method", "content_type", "status"),
    [
        ("POST", "application/grpc", 415),
        ("POST", "application/grpc+proto", 415),
        ("POST", "application/grpc-web+json", 415),
        ("PUT", "application/grpc-web", 405),
        ("POST", "application/json", 404),
        ("GET", "", 404),
    ],
)
async def test_requests_that_are_not_grpc_web(method: str, content_type: str, status: int) -> None:
    async with serving() as server:
        fields = [("content-type", content_type)] if content_type else []
        response = await server.connect().request(method, "/test.Echo/unary", fields)
        assert response.status == status
        assert response.headers["content-type"].startswith("text/plain")
        assert 0 < len(response.body) < 200
        assert ("allow" in response.headers) == (status == 405)


async def test_bytes_after_the_request_are_not_a_second_one() -> None:
    async with serving() as server:
        body = frame(StringValue(value="first").SerializeToString())
        data = b"POST /test.Echo/unary HTTP/1.1\r\nhost: x\r\ncontent-type: application/grpc-web\r\n"
        data += b"content-length: %d\r\n\r\n" % len(body) + body
        received = await server.connect().raw(data * 3)
        assert received.count(b"HTTP/1.1 200") == 1
        assert server.methods.events == ["first"]


async def test_peer_is_that_of_the_connection() -> None:
    async with serving() as server:
        connection = server.connect()
        await connection.call("unary", "x")
        assert server.connections[0].peer is PEER
