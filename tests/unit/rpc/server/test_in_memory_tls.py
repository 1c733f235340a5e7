"""A certificate that is issued or replaced while a port is serving."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
import trustme

from rpc.call import ServerCore
from rpc.network.listeners import open_listeners
from rpc.network.tls import InMemoryTls, ServerTls, TlsError
from rpc.server.port import serve
from tests.unit.rpc.server.test_port import MemoryListener, ask

CLIENT_LIMIT = 30.0


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def pair(authority: trustme.CA, name: str = "localhost") -> tuple[bytes, bytes]:
    leaf = authority.issue_cert(name, "127.0.0.1")
    return leaf.cert_chain_pems[0].bytes(), leaf.private_key_pem.bytes()


class Port:
    """A port on loopback, with memory streams for remote peers."""

    def __init__(self, tls: InMemoryTls | ServerTls, authority: trustme.CA, nursery: trio.Nursery) -> None:
        self.tls = tls
        self.far = MemoryListener()
        self.number = 0
        self.nursery = nursery
        self.opened: list[trio.SocketStream] = []
        self._client = ssl.create_default_context()
        authority.configure_trust(self._client)

    async def start(self) -> None:
        listeners = await open_listeners("127.0.0.1:0")
        self.number = listeners[0].socket.getsockname()[1]
        await self.nursery.start(lambda task_status: self._serve([*listeners, self.far], task_status))

    async def _serve(self, listeners: list[trio.abc.Listener[trio.abc.Stream]], task_status: object) -> None:
        await serve(listeners, ServerCore({}), tls=self.tls, task_status=task_status)  # type: ignore[arg-type]

    async def plain(self) -> bytes:
        """Return the response to a local peer that does not use TLS."""
        with trio.fail_after(CLIENT_LIMIT):
            return await ask(await self._opened())

    async def plain_from_afar(self) -> bytes:
        with trio.fail_after(CLIENT_LIMIT):
            return await ask(await self.far.connect())

    async def secure(self) -> trio.SSLStream[trio.SocketStream]:
        with trio.fail_after(CLIENT_LIMIT):
            stream = trio.SSLStream(await self._opened(), self._client, server_hostname="localhost")
            await stream.do_handshake()
            return stream

    async def _opened(self) -> trio.SocketStream:
        stream = await trio.open_tcp_stream("127.0.0.1", self.number)
        self.opened.append(stream)
        return stream

    async def close(self) -> None:
        for stream in self.opened:
            await trio.aclose_forcefully(stream)
        self.nursery.cancel_scope.cancel()


@pytest.fixture
async def port(authority: trustme.CA, nursery: trio.Nursery) -> AsyncIterator[Port]:
    created = Port(InMemoryTls(plain_locally=True), authority, nursery)
    await created.start()
    yield created
    await created.close()


async def test_without_a_certificate_all_is_in_plain_text(port: Port) -> None:
    assert (await port.plain()).startswith(b"HTTP/1.1 404")
    assert (await port.plain_from_afar()).startswith(b"HTTP/1.1 404")
    with pytest.raises(trio.BrokenResourceError):
        await port.secure()


async def test_with_one_only_this_computer_may_do_without_tls(port: Port, authority: trustme.CA) -> None:
    assert isinstance(port.tls, InMemoryTls)
    port.tls.take(*pair(authority))
    assert (await port.plain()).startswith(b"HTTP/1.1 404")
    assert b"this port speaks TLS" in await port.plain_from_afar()
    assert (await ask(await port.secure())).startswith(b"HTTP/1.1 404")


async def test_a_certificate_from_files_is_treated_the_same(
    tmp_path: Path, authority: trustme.CA, nursery: trio.Nursery
) -> None:
    for name, data in zip(("cert.pem", "key.pem"), pair(authority), strict=True):
        (tmp_path / name).write_bytes(data)
    created = Port(ServerTls(tmp_path / "cert.pem", tmp_path / "key.pem"), authority, nursery)
    await created.start()
    assert b"this port speaks TLS" in await created.plain()
    assert b"this port speaks TLS" in await created.plain_from_afar()
    await created.close()


async def test_a_new_one_serves_new_connections_and_living_ones_stay(port: Port, authority: trustme.CA) -> None:
    assert isinstance(port.tls, InMemoryTls)
    assert port.tls.take(*pair(authority))
    living = await port.secure()
    before = living.getpeercert(binary_form=True)
    assert port.tls.take(*pair(authority))
    after = (await port.secure()).getpeercert(binary_form=True)
    assert before != after
    assert (await ask(living)).startswith(b"HTTP/1.1 404")


async def test_an_unusable_certificate_changes_nothing(authority: trustme.CA) -> None:
    held, (chain, key) = InMemoryTls(), pair(authority)
    assert held.take(chain, key)
    assert not held.take(chain, key)
    context, facts = held.context, held.facts
    for bad in ((b"", key), (chain, b""), (chain, pair(authority)[1]), (b"-----BEGIN CERTIFICATE-----\nx", key)):
        with pytest.raises(TlsError) as caught:
            held.take(*bad)
        assert key.decode().splitlines()[1] not in str(caught.value)
        assert "/proc/" not in str(caught.value)
    assert (held.context, held.facts) == (context, facts)
