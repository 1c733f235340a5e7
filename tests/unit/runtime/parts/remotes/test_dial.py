"""How a machine connects to a remote and which identity it presents, according to the remote's entry."""

from __future__ import annotations

import ssl
from typing import Any

import pytest
import trio
import trustme

from rpc.client.credentials import ApiKey
from runtime.parts.remotes.dial import DEFAULT_PORT, Route, credentials_of, dial, route_to
from runtime.parts.remotes.manager import _version
from schema.document.remotes import Remote, RemoteAuth, RemoteCredentials
from schema.errors import ConfigError

KEY = RemoteAuth(entity="id", credentials=RemoteCredentials(type="api-key", payload="hush"))


def remote(address: str = "pi:8080", **more: Any) -> Remote:
    return Remote(name="pi", address=address, **more)


@pytest.mark.parametrize(
    ("address", "insecure", "mode", "shown"),
    [
        ("pi.local", False, "either", f"pi.local:{DEFAULT_PORT}"),
        ("pi.local:9000", False, "either", "pi.local:9000"),
        ("pi.local:9000", True, "plain", "pi.local:9000"),
        ("[fe80::1]:9000", False, "either", "[fe80::1]:9000"),
        ("[fe80::1]", False, "either", f"[fe80::1]:{DEFAULT_PORT}"),
        ("http://pi:9000", False, "plain", "pi:9000"),
        ("https://pi", False, "tls", "pi:443"),
        ("unix:/run/m.sock", False, "plain", "unix:/run/m.sock"),
    ],
)
def test_ways(address: str, insecure: bool, mode: str, shown: str) -> None:
    way = route_to(remote(address, insecure=insecure), "remotes.0")
    assert (way.mode, way.address, way.secret) == (mode, shown, False)


@pytest.mark.parametrize(
    ("entry", "path"),
    [
        (remote("pi:90/x"), "remotes.3.address"),
        (remote("pi:many"), "remotes.3.address"),
        (remote("https://pi", insecure=True), "remotes.3.insecure"),
        (
            remote(auth=RemoteAuth(credentials=RemoteCredentials(type="api-key", payload="hush"))),
            "remotes.3.auth.entity",
        ),
        (
            remote(auth=RemoteAuth(credentials=RemoteCredentials(type="password", payload="hush"))),
            "remotes.3.auth.credentials.type",
        ),
    ],
)
def test_entries_that_cannot_be_used_say_where(entry: Remote, path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        route_to(entry, "remotes.3")
    assert caught.value.path == path
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("entry", "entity", "kind"),
    [
        (remote(auth=KEY), "id", "api-key"),
        (remote(secret="hush"), "pi", "robot-location-secret"),
        (remote("https://pi.example", secret="hush", auth=RemoteAuth(entity="me")), "me", "robot-location-secret"),
        (
            remote(auth=RemoteAuth(credentials=RemoteCredentials(type="robot-location-secret", payload="hush"))),
            "pi",
            "robot-location-secret",
        ),
    ],
)
def test_credentials_show_the_entity_but_never_the_secret(entry: Remote, entity: str, kind: str) -> None:
    result = credentials_of(entry, "remotes.0")
    assert isinstance(result, ApiKey)
    assert repr(result) == f"ApiKey({entity!r}, type={kind!r})"
    assert route_to(entry, "remotes.0").secret
    assert "hush" not in repr(entry) + repr(route_to(entry, "remotes.0")) + _version(entry)


def test_no_credentials() -> None:
    assert credentials_of(remote(), "remotes.0") is None
    assert credentials_of(remote(auth=RemoteAuth(entity="id")), "remotes.0") is None


def test_changes_that_need_another_connection() -> None:
    assert _version(remote(auth=KEY)) != _version(remote())
    assert _version(remote(frame={"parent": "world"})) == _version(remote())
    assert _version(remote(prefix="x-")) != _version(remote())


# ---- over real sockets


class Listener:
    """Accept connections on loopback; without TLS, hang up on a TLS hello as machine-server does."""

    def __init__(self, context: ssl.SSLContext | None) -> None:
        self.context = context
        self.plain = 0

    async def serve(self, *, task_status: trio.TaskStatus[int]) -> None:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        task_status.started(listener.socket.getsockname()[1])
        await trio.serve_listeners(self.handle, [listener])

    async def handle(self, stream: trio.SocketStream) -> None:
        async with stream:
            if self.context is not None:
                secure = trio.SSLStream(stream, self.context, server_side=True)
                try:
                    await secure.do_handshake()
                    await secure.receive_some()
                except trio.BrokenResourceError:
                    pass
            elif (await stream.receive_some())[:1] == b"P":  # the HTTP/2 preface
                self.plain += 1
                await stream.send_all(b"ok")


async def reached(listener: Listener, address: str, *, trusted: str = "", **more: Any) -> trio.abc.Stream:
    outcome: trio.abc.Stream | OSError
    async with trio.open_nursery() as nursery:
        port = await nursery.start(listener.serve)
        try:
            way = route_to(remote(f"{address}:{port}", **more), "remotes.0")
            outcome = stream = await dial(way, trusted=lambda: trusted)
            await stream.send_all(b"PRI")
            if isinstance(stream, trio.SocketStream):
                assert await stream.receive_some() == b"ok"
            await trio.aclose_forcefully(stream)
        except OSError as error:
            outcome = error
        nursery.cancel_scope.cancel()
    if isinstance(outcome, OSError):
        raise outcome
    return outcome


@pytest.fixture
def authority(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> trustme.CA:
    ca = trustme.CA()
    ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    return ca


def context(authority: trustme.CA, host: str) -> ssl.SSLContext:
    result = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    result.set_alpn_protocols(["h2"])
    authority.issue_cert(host).configure_cert(result)
    return result


async def test_tls_where_it_is_spoken(authority: trustme.CA) -> None:
    for address in ("127.0.0.1", "https://127.0.0.1"):
        assert isinstance(await reached(Listener(context(authority, "127.0.0.1")), address, auth=KEY), trio.SSLStream)


async def test_a_certificate_of_another_host_is_never_a_reason_for_plain_text(authority: trustme.CA) -> None:
    listener = Listener(context(authority, "elsewhere"))
    with pytest.raises(OSError, match="certificate is not trusted"):
        await reached(listener, "127.0.0.1")


async def test_machines_of_one_organization_trust_each_other() -> None:
    authority = trustme.CA()
    roots, listener = authority.cert_pem.bytes().decode(), Listener(context(authority, "127.0.0.1"))
    assert isinstance(await reached(listener, "127.0.0.1", trusted=roots), trio.SSLStream)
    for others in ("", trustme.CA().cert_pem.bytes().decode()):
        with pytest.raises(OSError, match="certificate is not trusted"):
            await reached(listener, "127.0.0.1", trusted=others)


async def test_plain_text_where_no_tls_is_spoken() -> None:
    assert isinstance(await reached(Listener(None), "127.0.0.1"), trio.SocketStream)
    assert isinstance(await reached(Listener(None), "127.0.0.1", auth=KEY), trio.SocketStream)  # loopback
    assert isinstance(await reached(Listener(None), "127.0.0.1", auth=KEY, insecure=True), trio.SocketStream)
    with pytest.raises(OSError, match="the TLS connection failed"):
        await reached(Listener(None), "https://127.0.0.1")


async def test_a_key_does_not_travel_in_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rpc.carrier.Peer.local", False)  # as if it were another computer
    listener = Listener(None)
    with pytest.raises(OSError, match="keys are not sent in plain text"):
        await reached(listener, "127.0.0.1", auth=KEY)
    assert listener.plain == 0
    assert isinstance(await reached(listener, "127.0.0.1", auth=KEY, insecure=True), trio.SocketStream)


async def test_no_answer() -> None:
    with pytest.raises(OSError) as caught:
        await dial(Route(route_to(remote("127.0.0.1:1"), "remotes.0").target, "plain", secret=False))
    assert str(caught.value) == "Connection refused"
