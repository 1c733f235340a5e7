"""A port on loopback, called by curl, Python's ssl and plain sockets."""

from __future__ import annotations

import hashlib
import socket
import ssl
import time
from pathlib import Path

import pytest
import trio
from google.protobuf.wrappers_pb2 import StringValue
from grpclib.const import Cardinality, Status
from grpclib.exceptions import GRPCError
from trio_websocket import open_websocket_url

from rpc.carrier import Peer
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey
from rpc.http.limits import HttpLimits
from rpc.limits import Limits
from rpc.network.tls import TlsError, client_context
from tests.e2e.port.support import CURL, KEY, KEY_ID, curl, port
from tests.selfsigned import self_signed, write_self_signed
from tests.unit.rpc.http1.support import Response, frame

pytestmark = pytest.mark.slow
with_curl = pytest.mark.skipif(CURL is None, reason="curl is not installed")


@with_curl
@pytest.mark.parametrize(("option", "version"), [("--http1.1", "1.1"), ("--http2-prior-knowledge", "2")])
async def test_pages_without_tls(option: str, version: str) -> None:
    async with port() as server:
        result = await curl(option, "--data", "body", server.url)
        assert result.stdout.decode() == f"http {version} body", result.stderr
        upgraded = await curl("--http2", server.url)  # requests an upgrade, gets an answer in HTTP/1.1
        assert upgraded.stdout == b"http 1.1 "


@with_curl
@pytest.mark.parametrize(("option", "version"), [("--http1.1", "1.1"), ("--http2", "2")])
@pytest.mark.parametrize("tls", ["--tlsv1.3", "--tls-max=1.2"])
async def test_pages_with_tls(option: str, version: str, tls: str, tmp_path: Path) -> None:
    async with port(tmp_path) as server:
        options = (*tls.split("="), "--cacert", str(tmp_path / "cert.pem"))
        result = await curl(option, *options, "--data", "body", server.url)
        assert result.stdout.decode() == f"https {version} body", result.stderr


@with_curl
async def test_tls_1_1_is_refused(tmp_path: Path) -> None:
    async with port(tmp_path) as server:
        result = await curl("--tls-max", "1.1", "--ciphers", "DEFAULT@SECLEVEL=0", "--insecure", server.url)
        assert result.returncode == 35
        assert (await curl("--insecure", server.url)).returncode == 0


@with_curl
@pytest.mark.parametrize("option", ["--http1.1", "--http2-prior-knowledge"])
async def test_grpc_web_by_curl(option: str, tmp_path: Path) -> None:
    (tmp_path / "request").write_bytes(frame(StringValue(value="hello").SerializeToString()))
    async with port() as server:
        result = await curl(
            option,
            "--header",
            "content-type: application/grpc-web+proto",
            "--data-binary",
            f"@{tmp_path / 'request'}",
            f"{server.url}/test.Echo/unary",
        )
        response = Response(200, {}, result.stdout)
        assert response.values == ["hello"]
        assert response.trailers == {"grpc-status": "0"}


@with_curl
async def test_an_upload_with_expect_and_an_endless_download() -> None:
    async with port() as server:
        result = await curl("--http1.1", "--header", "expect: 100-continue", "--data", "x" * 5000, server.url)
        assert result.stdout.decode() == f"http 1.1 {'x' * 5000}"


def probe(number: int) -> tuple[str, float]:
    """Do the synchronous test of the official SDK for TLS on a port."""
    begin = time.monotonic()
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    try:
        with socket.create_connection(("127.0.0.1", number), timeout=20) as plain, context.wrap_socket(plain) as secure:
            return str(secure.selected_alpn_protocol()), time.monotonic() - begin
    except ssl.SSLError as error:
        return str(error.reason), time.monotonic() - begin


async def test_a_port_without_tls_answers_a_tls_probe_at_once() -> None:
    async with port() as server:
        said, took = await trio.to_thread.run_sync(probe, server.number)
        assert said == "WRONG_VERSION_NUMBER"
        assert took < 15, "it waited for more"


async def test_a_port_with_tls_answers_the_probe(tmp_path: Path) -> None:
    async with port(tmp_path) as server:
        assert (await trio.to_thread.run_sync(probe, server.number))[0] == "h2"


@pytest.mark.parametrize("begin", [b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"])
async def test_a_tls_port_explains_itself_in_plain_text(begin: bytes, tmp_path: Path) -> None:
    async with port(tmp_path) as server:
        received = await server.raw(begin)
        assert received.startswith(b"HTTP/1.1 400 ")
        assert b"TLS" in received


async def test_both_families() -> None:
    async with port() as server:
        for address in ("127.0.0.1", "::1"):
            async with await trio.open_tcp_stream(address, server.number) as stream:
                await stream.send_all(b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
                assert (await stream.receive_some(100)).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("garbage", [b"\x00" * 50, b"\xff\xfe\r\n\r\n", b"SSH-2.0-x\r\n\r\n", b"PRInt\r\n\r\n", b"P"])
async def test_garbage_is_answered_or_dropped_and_affects_no_other_client(garbage: bytes) -> None:
    async with port(limits=Limits(handshake_timeout=0.3), http=HttpLimits(head_timeout=0.3)) as server:
        received = await server.raw(garbage)
        assert received == b"" or received.startswith(b"HTTP/1.1 4")
        assert (await server.raw(b"GET / HTTP/1.0\r\nhost: localhost\r\n\r\n")).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("garbage", [b"\x16\x03\x01\x00\x05hello", b"\x16" * 1000, b"\x16"])
async def test_tls_garbage(garbage: bytes, tmp_path: Path) -> None:
    async with port(tmp_path, limits=Limits(handshake_timeout=0.3)) as server:
        received = await server.raw(garbage)
        assert not received or received[0] == 21  # a TLS alert
        assert (await trio.to_thread.run_sync(probe, server.number))[0] == "h2"


async def test_silent_connections_are_closed() -> None:
    async with port(limits=Limits(handshake_timeout=0.2)) as server:
        assert await server.raw(b"") == b""
        assert server.core.statistics.refusals["handshake timeout"] == 1


async def test_connections_per_address() -> None:
    async with port(http=HttpLimits(max_per_address=2)) as server:
        first, second = await server.connect(), await server.connect()
        for stream in (first, second):
            await stream.send_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert await stream.receive_some(1000)
        assert await server.raw(b"") == b""
        assert server.core.statistics.refusals["connections"] == 1
        await first.aclose()
        with trio.fail_after(30):  # its slot is free after its task has ended, of which there is no event
            while not await server.raw(b"GET / HTTP/1.0\r\nhost: localhost\r\n\r\n"):
                await trio.lowlevel.checkpoint()
        await second.aclose()


async def test_a_renewed_certificate_is_used_for_new_connections(tmp_path: Path) -> None:
    async with port(tmp_path) as server:
        assert server.tls is not None
        old = server.tls.facts.fingerprint
        context = client_context(verify=False)

        async def secure() -> trio.SSLStream[trio.SocketStream]:
            stream = trio.SSLStream(await server.connect(), context, server_hostname="localhost", https_compatible=True)
            await stream.do_handshake()
            return stream

        async def ask(stream: trio.SSLStream[trio.SocketStream]) -> bytes:
            await stream.send_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
            received = b""
            while not received.endswith(b"https 1.1 "):
                received += await stream.receive_some(1000)
            return received

        context.set_alpn_protocols(["http/1.1"])
        before = await secure()
        assert (await ask(before)).startswith(b"HTTP/1.1 200")
        (tmp_path / "key.pem").write_text("broken")
        with pytest.raises(TlsError):
            server.tls.reload()
        async with await secure() as meanwhile:
            assert (await ask(meanwhile)).startswith(b"HTTP/1.1 200")
        for name in ("cert.pem", "key.pem"):
            (tmp_path / name).unlink()
        write_self_signed(tmp_path / "cert.pem", tmp_path / "key.pem")
        assert server.tls.reload()
        after = await secure()
        certificate = after.getpeercert(binary_form=True)
        assert certificate is not None
        assert hashlib.sha256(certificate).hexdigest() == server.tls.facts.fingerprint != old
        assert (await ask(before)).startswith(b"HTTP/1.1 200")  # it was not dropped
        await before.aclose()
        await after.aclose()
        assert self_signed() != self_signed()


async def test_websocket() -> None:
    async with port() as server, open_websocket_url(f"ws://localhost:{server.number}/ws") as socket:
        await socket.send_message("hello")
        assert await socket.get_message() == "hello"


@pytest.mark.parametrize(("origin", "status"), [("https://evil.example", b"403"), ("http://localhost:{}", b"101")])
async def test_websocket_by_origin(origin: str, status: bytes) -> None:
    async with port() as server, await server.connect() as stream:
        head = f"GET /ws HTTP/1.1\r\nhost: localhost:{server.number}\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
        head += "sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
        await stream.send_all(f"{head}origin: {origin.format(server.number)}\r\n\r\n".encode())
        assert (await stream.receive_some(1000)).split()[1] == status


async def test_shutdown_waits_for_calls_and_cancels_the_rest() -> None:
    async with port(limits=Limits(drain_timeout=0.3)) as server:
        stream = await server.connect()
        head = b"POST /test.Echo/hang HTTP/1.1\r\nhost: x\r\ncontent-type: application/grpc-web\r\n"
        await stream.send_all(head + b"content-length: 5\r\n\r\n" + frame(b""))
        await server.methods.hanging.wait()
        server.serving.cancel()
        await server.methods.cancelled.wait()
        received = b""
        while more := await stream.receive_some(1000):
            received += more
        assert received.startswith(b"HTTP/1.1 200")
        await stream.aclose()
        with pytest.raises(OSError):
            await server.connect()


async def test_keys_on_both_protocols() -> None:
    async with port(keys=True) as server:

        async def call(credentials: ApiKey | None) -> str:
            async with Channel(f"localhost:{server.number}", credentials=credentials) as channel:
                async with channel.request(
                    "/test.Echo/unary", Cardinality.UNARY_UNARY, StringValue, StringValue
                ) as stream:
                    await stream.send_message(StringValue(value="x"), end=True)
                    reply = await stream.recv_message()
                    return str(reply.value)

        assert await call(ApiKey(KEY_ID, KEY)) == "x"
        for wrong in (None, ApiKey(KEY_ID, "wrong"), ApiKey("nobody", KEY)):
            with pytest.raises(GRPCError) as caught:
                await call(wrong)
            assert caught.value.status is Status.UNAUTHENTICATED
            assert KEY not in (caught.value.message or "")
        page = await server.raw(b"GET / HTTP/1.0\r\nhost: localhost\r\n\r\n")
        assert page.startswith(b"HTTP/1.1 401")
        token = server.authenticator.authenticate(KEY_ID, "api-key", KEY, peer=Peer())
        page = await server.raw(f"GET / HTTP/1.0\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n".encode())
        assert page.startswith(b"HTTP/1.1 200")
