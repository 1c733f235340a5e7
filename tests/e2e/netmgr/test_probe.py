"""The probe of connectivity against servers on loopback: the cloud, and everything else that may answer."""

from __future__ import annotations

import json
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio

from netmgr.connectivity import probe
from netmgr.connectivity.probe import ConnectivityVerdict, prove
from rpc.access.proof import answer, proof_key
from tests.loopback import free_port, listening
from tests.selfsigned import self_signed

PART = "part-1"
KEY = proof_key("secret of the cloud", PART)
NOW = 1_800_000_000

Handler = Callable[[trio.abc.Stream], Awaitable[None]]


async def head_of(stream: trio.abc.Stream) -> str:
    data = b""
    while b"\r\n\r\n" not in data:
        data += await stream.receive_some()
    return data.decode()


async def reply(stream: trio.abc.Stream, status: str, body: bytes, *headers: str) -> None:
    head = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", "connection: close", *headers]
    await stream.send_all("\r\n".join([*head, "", ""]).encode() + body)


async def cloud(stream: trio.abc.Stream, key: str = KEY) -> None:
    target = (await head_of(stream)).split()[1]
    path, _, nonce = target.partition("?nonce=")
    assert path == f"/connectivity/{PART}"
    await reply(stream, "200 OK", json.dumps(answer(key, nonce, NOW)).encode())


async def other_cloud(stream: trio.abc.Stream) -> None:
    await cloud(stream, proof_key("another secret", PART))


async def hotel(stream: trio.abc.Stream) -> None:
    await head_of(stream)
    await reply(stream, "302 Found", b"log in", "location: http://portal.example/")


async def endless(stream: trio.abc.Stream) -> None:
    await head_of(stream)
    await stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9999999999\r\n\r\n")
    while True:
        try:
            await stream.send_all(b"x" * 65536)
        except trio.BrokenResourceError:
            return


async def rude(stream: trio.abc.Stream) -> None:
    await head_of(stream)
    await stream.send_all(b"SSH-2.0-OpenSSH\r\n\r\n")


async def greeting(stream: trio.abc.Stream) -> None:
    await stream.send_all(b"SSH-2.0-OpenSSH\r\n")
    await trio.sleep_forever()


async def silent(stream: trio.abc.Stream) -> None:
    await trio.sleep_forever()


async def gone(stream: trio.abc.Stream) -> None:
    await head_of(stream)


@pytest.mark.parametrize(
    ("handler", "verdict", "detail"),
    [
        (cloud, ConnectivityVerdict.CLOUD, ""),
        (other_cloud, ConnectivityVerdict.OTHER, "without the signature"),
        (hotel, ConnectivityVerdict.OTHER, "without the signature"),
        (endless, ConnectivityVerdict.OTHER, "without the signature"),
        (rude, ConnectivityVerdict.OTHER, "does not speak http"),
        (gone, ConnectivityVerdict.OTHER, "does not speak http"),
    ],
)
async def test_only_the_signed_answer_counts(handler: Handler, verdict: ConnectivityVerdict, detail: str) -> None:
    async with listening(handler) as port:
        result = await prove(f"http://127.0.0.1:{port}", PART, KEY)
    assert result.verdict is verdict
    assert detail in result.detail
    assert result.time == (NOW if verdict is ConnectivityVerdict.CLOUD else None)


async def test_an_untrusted_certificate_is_accepted(tmp_path: Path) -> None:
    certificate, key = self_signed(["elsewhere.example"])
    (tmp_path / "chain.pem").write_bytes(certificate + key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "chain.pem")

    async def secure(stream: trio.SocketStream) -> None:
        await cloud(trio.SSLStream(stream, context, server_side=True, https_compatible=True))

    async with listening(secure) as port:
        assert (await prove(f"https://127.0.0.1:{port}", PART, KEY)).verdict is ConnectivityVerdict.CLOUD


async def test_a_server_without_tls_is_reported_as_such() -> None:
    async with listening(greeting) as port:
        result = await prove(f"https://127.0.0.1:{port}", PART, KEY)
    assert result.verdict is ConnectivityVerdict.OTHER
    assert "does not speak https" in result.detail


async def test_a_closed_port_gives_no_answer() -> None:
    result = await prove(f"http://127.0.0.1:{free_port()}", PART, KEY)
    assert result.verdict is ConnectivityVerdict.NO_ANSWER
    assert "Connection refused" in result.detail


async def test_a_name_that_cannot_be_resolved_is_reported_as_such() -> None:
    result = await prove(f"http://{'a' * 64}.example", PART, KEY)
    assert result.verdict is ConnectivityVerdict.NO_NAME


async def test_a_silent_name_server_is_reported_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: object, **__: object) -> list[object]:
        await trio.sleep_forever()
        raise AssertionError

    monkeypatch.setattr(trio.socket, "getaddrinfo", never)
    monkeypatch.setattr(probe, "NAME_LIMIT", 0.05)
    with trio.fail_after(30):
        result = await prove("http://cloud.example", PART, KEY)
    assert result.verdict is ConnectivityVerdict.NO_NAME
    assert "no name server answers" in result.detail


async def test_the_question_leaves_only_through_the_interface() -> None:
    async with listening(cloud) as port:
        assert (await prove(f"http://127.0.0.1:{port}", PART, KEY, interface="lo")).verdict is ConnectivityVerdict.CLOUD
        result = await prove(f"http://127.0.0.1:{port}", PART, KEY, interface="no-such-device")
    assert result.verdict is ConnectivityVerdict.NO_ANSWER
    assert "No such device" in result.detail


async def test_a_silent_server_takes_as_long_as_the_caller_allows() -> None:
    async with listening(silent) as port:
        with trio.move_on_after(0.1) as scope:
            await prove(f"http://127.0.0.1:{port}", PART, KEY)
    assert scope.cancelled_caught
