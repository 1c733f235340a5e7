"""Webhooks over real sockets: the requests that arrive, the addresses that are called, and the reported outcomes."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
import trio
from standardwebhooks.webhooks import Webhook

from tests.e2e.triggers.receiver import Received, answering, receiver
from tests.loopback import listening
from tests.selfsigned import self_signed
from tests.unit.triggers.make import HOOK, SECRET, WHERE, data, trigger, upload
from triggers.evaluate import fires
from triggers.retry import next_try
from triggers.send import MAX_ANSWER, deliver
from triggers.ssrf import Allow
from triggers.webhook import WebhookRequest, webhook

LOOPBACK = Allow.parse(["127.0.0.0/8"])
NOWHERE = (
    "the name {} has no address that this cloud may call: correct it, or ask the administrator of the cloud to allow it"
)
LIMIT = 60.0  # generous: the computer that runs the tests may be busy


class Names(trio.abc.HostnameResolver):
    """A resolver with prepared answers: each is used once, the last one forever."""

    def __init__(self, accepted: Mapping[str, Sequence[Sequence[str]]]) -> None:
        self.answers = {name: list(answers) for name, answers in accepted.items()}
        self.asked: list[str] = []

    async def getaddrinfo(self, host: Any, port: Any, family: int = 0, type: int = 0, *_: Any) -> Any:  # noqa: A002
        name = host.decode() if isinstance(host, bytes) else host
        self.asked.append(name)
        answers = self.answers.get(name)
        if not answers:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        addresses = answers.pop(0) if len(answers) > 1 else answers[0]
        return [
            (socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in addresses
        ]

    async def getnameinfo(self, sockaddr: Any, flags: int) -> Any:
        raise NotImplementedError


@pytest.fixture
async def names() -> AsyncIterator[Names]:
    created = Names({})
    before = trio.socket.set_custom_hostname_resolver(created)
    yield created
    trio.socket.set_custom_hostname_resolver(before)


def request(url: str, method: str = "POST", body: bytes = b"{}", **headers: str) -> WebhookRequest:
    return WebhookRequest(method, url, tuple(headers.items()), body)


async def test_the_received_body_matches_its_signature() -> None:
    expected = trigger(data("tabular"), {**HOOK, "secret": SECRET})
    firing = fires(expected, upload({"t": 1}))
    assert firing is not None
    message = webhook(expected, expected.notifications[0], firing, WHERE, "msg_1", datetime.now(UTC))
    async with receiver(answering(204)) as other:
        with trio.fail_after(LIMIT):
            outcome = await deliver(
                WebhookRequest(message.method, other.url(), message.headers, message.body), LOOPBACK
            )
        assert outcome.delivered
        assert outcome.status == 204
        (came,) = other.requests
    assert (came.method, came.target, came.body) == ("POST", "/hook?a=1", message.body)
    assert came.headers["Host"] == f"127.0.0.1:{other.port}"
    assert came.headers["Part-Id"] == "part-1"
    Webhook(SECRET).verify(came.body, came.headers)


async def test_a_get_has_no_body() -> None:
    async with receiver() as other:
        with trio.fail_after(LIMIT):
            assert (await deliver(request(other.url(), "GET", b"", **{"Robot-Id": "r"}), LOOPBACK)).delivered
        (came,) = other.requests
    assert (came.method, came.body) == ("GET", b"")
    assert "Content-Length" not in came.headers
    assert "Transfer-Encoding" not in came.headers


# ---- addresses


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "127.1", "2130706433", "0x7f.0.0.1", "0.0.0.0"]
)
async def test_loopback_addresses_are_refused_in_any_form(host: str) -> None:
    async with receiver() as other:
        with trio.fail_after(LIMIT):
            outcome = await deliver(request(other.url(host)))
        assert outcome.final
        assert outcome.error
        assert not other.requests
    assert next_try(outcome, 1, "x") is None


async def test_a_name_with_a_private_address_is_refused_unless_allowed(names: Names) -> None:
    names.answers["hooks.test"] = [["127.0.0.1"]]
    async with receiver() as other:
        with trio.fail_after(LIMIT):
            for allow in (Allow(), Allow.parse(["other.test"]), Allow.parse(["10.0.0.0/8"])):
                outcome = await deliver(request(other.url("hooks.test")), allow)
                assert "127.0.0.1 of hooks.test may not be called: loopback" in outcome.internal
                assert outcome.error == NOWHERE.format("hooks.test")
            assert not other.requests
            for allow in (Allow.parse(["hooks.test"]), LOOPBACK):
                assert (await deliver(request(other.url("hooks.test")), allow)).delivered
        assert [came.headers["Host"] for came in other.requests] == [f"hooks.test:{other.port}"] * 2


async def test_one_forbidden_address_among_others_is_refused(names: Names) -> None:
    names.answers["mixed.test"] = [["127.0.0.1", "169.254.169.254"]]
    async with receiver() as other:
        with trio.fail_after(LIMIT):
            outcome = await deliver(request(other.url("mixed.test")), Allow.parse(["mixed.test"]))
        assert "169.254.169.254" in outcome.internal
        assert outcome.error == NOWHERE.format("mixed.test")
        assert not outcome.final  # like a name that does not exist
        assert not other.requests


async def test_a_name_is_resolved_only_once(names: Names) -> None:
    """DNS rebinding: the second answer would be a private address, but there is no second query."""
    names.answers["rebind.test"] = [["127.0.0.1"], ["127.0.0.2"]]
    async with receiver() as other:
        with trio.fail_after(LIMIT):
            assert (await deliver(request(other.url("rebind.test")), Allow.parse(["127.0.0.1"]))).delivered
            assert names.asked == ["rebind.test"]
            outcome = await deliver(request(other.url("rebind.test")), Allow.parse(["127.0.0.1"]))
        assert "127.0.0.2" in outcome.internal
        assert len(other.requests) == 1


async def test_the_next_address_is_tried_if_the_first_fails(names: Names) -> None:
    names.answers["two.test"] = [["127.0.0.9", "127.0.0.1"]]  # the receiver listens on the second only
    async with receiver() as other:
        with trio.fail_after(LIMIT):
            assert (await deliver(request(other.url("two.test")), LOOPBACK)).delivered


async def test_redirects_are_not_followed() -> None:
    async with (
        receiver() as hidden,
        receiver(answering(302, {"Location": f"http://127.0.0.1:{hidden.port}/"})) as other,
    ):
        with trio.fail_after(LIMIT):
            outcome = await deliver(request(other.url()), LOOPBACK)
        assert outcome.error == "answered 302, redirects are not followed"
        assert outcome.final
        assert not hidden.requests


# ---- outcomes


async def test_the_error_text_of_a_receiver_is_reported() -> None:
    async with receiver(answering(500, body=b"no\r\n disk\x00 left" + b"x" * 1000)) as other:
        with trio.fail_after(LIMIT):
            outcome = await deliver(request(other.url()), LOOPBACK)
    assert outcome.error.startswith("answered 500, the receiver failed: no disk  left")
    assert len(outcome.error) < 300
    assert next_try(outcome, 1, "x") is not None


async def test_an_answer_that_repeats_the_url_is_masked() -> None:
    path = "/services/T0SECRET1/B0SECRET2?token=S3CRETTT&x=%C3%A4%20SECRET4"
    said = f"Cannot POST {path}: T0SECRET1, B0SECRET2, S3CRETTT, ä SECRET4"
    async with receiver(answering(404, body=said.encode())) as other:
        with trio.fail_after(LIMIT):
            outcome = await deliver(request(f"http://127.0.0.1:{other.port}{path}"), LOOPBACK)
    assert outcome.error.startswith("answered 404, the URL does not exist: Cannot POST ***")
    assert "SECRET" not in outcome.error
    assert "S3CRETTT" not in outcome.error


async def test_retry_after_in_seconds_and_as_a_date() -> None:
    for text in ("120", format_datetime(datetime.now(UTC) + timedelta(seconds=120), usegmt=True)):
        async with receiver(answering(429, {"Retry-After": text})) as other:
            with trio.fail_after(LIMIT):
                outcome = await deliver(request(other.url()), LOOPBACK)
            assert outcome.retry_after is not None
            assert 100 < outcome.retry_after <= 120
    async with receiver(answering(503, {"Retry-After": "soon"})) as other:
        with trio.fail_after(LIMIT):
            assert (await deliver(request(other.url()), LOOPBACK)).retry_after is None
    for date in ("Mon, 01 Jan 99999999999 00:00:00 GMT", f"Mon, 01 Jan 2026 {'9' * 20}:00:00 GMT"):
        async with receiver(answering(200, {"Retry-After": date})) as other:
            with trio.fail_after(LIMIT):
                assert (await deliver(request(other.url()), LOOPBACK)).delivered  # sent only once


async def test_an_endless_answer_is_cut_off() -> None:
    sent = 0

    async def endless(stream: trio.abc.Stream, received: Received) -> None:
        nonlocal sent
        await stream.send_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            await stream.send_all(b"1000\r\n" + b"x" * 4096 + b"\r\n")
            sent += 4096

    async with receiver(endless) as other:
        with trio.fail_after(LIMIT):
            assert (await deliver(request(other.url()), LOOPBACK)).delivered
    assert sent < MAX_ANSWER + 8 * 1024 * 1024  # the rest is in the kernel's buffers


async def test_a_missing_answer_is_ended_by_the_caller() -> None:
    arrived = trio.Event()

    async def silent(stream: trio.abc.Stream, received: Received) -> None:
        arrived.set()
        await trio.sleep_forever()

    async with receiver(silent) as other:
        with trio.fail_after(LIMIT), trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(deliver, request(other.url()), LOOPBACK)
                await arrived.wait()
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel()
        assert scope.cancelled_caught
        assert len(other.requests) == 1


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"SSH-2.0-x\r\n",
        b"HTTP/1.1 99999 x\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
    ],
)
async def test_a_receiver_that_closes_or_does_not_speak_http(said: bytes) -> None:
    async def rude(stream: trio.abc.Stream, received: Received) -> None:
        await stream.send_all(said)

    async with receiver(rude) as other:
        with trio.fail_after(LIMIT):
            outcome = await deliver(request(other.url()), LOOPBACK)
    assert outcome.error.startswith("no answer from 127.0.0.1")
    assert next_try(outcome, 1, "x") is not None


async def test_a_status_counts_even_if_the_rest_is_lost() -> None:
    async def brief(stream: trio.abc.Stream, received: Received) -> None:
        await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx")

    async with receiver(brief) as other:
        with trio.fail_after(LIMIT):
            assert (await deliver(request(other.url()), LOOPBACK)).delivered


async def test_an_early_answer_is_read() -> None:
    async def hasty(stream: trio.SocketStream) -> None:
        await stream.receive_some(100)
        await stream.send_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        await stream.send_eof()
        async for _ in stream:
            pass

    async with listening(hasty) as port:
        with trio.fail_after(LIMIT):
            outcome = await deliver(request(f"http://127.0.0.1:{port}/", body=b"x" * 10_000_000), LOOPBACK)
    assert outcome.status == 413


async def test_refused_connections_and_unknown_names(names: Names) -> None:
    async with receiver() as other:
        url = other.url()
    with trio.fail_after(LIMIT):
        closed = await deliver(request(url), LOOPBACK)
        unknown = await deliver(request("http://unknown.test/"), LOOPBACK)
    assert closed.error.startswith("no answer from 127.0.0.1")
    assert unknown.error == NOWHERE.format("unknown.test")
    assert unknown.internal == "the name unknown.test cannot be resolved: Name or service not known"
    assert not closed.final
    assert not unknown.final


async def test_an_invalid_header_is_not_sent() -> None:
    async with receiver() as other:
        with trio.fail_after(LIMIT):
            outcome = await deliver(request(other.url(), **{"X-A": "b\r\nX-Evil: 1"}), LOOPBACK)
        assert outcome.final
        assert "cannot be sent" in outcome.error
        assert not other.requests


# ---- TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the contexts of a server for hooks.test and of a client that trusts it."""
    folder: Path = tmp_path_factory.mktemp("tls")
    pem, key = self_signed(["hooks.test"])
    (folder / "cert.pem").write_bytes(pem)
    (folder / "key.pem").write_bytes(key)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return server, ssl.create_default_context(cafile=str(folder / "cert.pem"))


async def test_tls_is_checked_against_the_name_and_not_the_address(
    names: Names, certificate: tuple[ssl.SSLContext, ssl.SSLContext]
) -> None:
    server, client = certificate
    names.answers.update({"hooks.test": [["127.0.0.1"]], "other.test": [["127.0.0.1"]]})
    async with receiver(tls=server) as other:
        with trio.fail_after(LIMIT):
            assert (await deliver(request(other.url("hooks.test", "https")), LOOPBACK, client)).delivered
            wrong = await deliver(request(other.url("other.test", "https")), LOOPBACK, client)
            untrusted = await deliver(request(other.url("hooks.test", "https")), LOOPBACK)
    assert "certificate of other.test is not trusted" in wrong.error
    assert "certificate of hooks.test is not trusted" in untrusted.error
    assert len(other.requests) == 1
