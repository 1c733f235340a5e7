"""A direct connection to a machine of the cloud is used only if it proves which part it is, and only if it is quick."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
import trio

from cloud.domain.certificates.issue import new_leaf, new_root
from command.connection import Connection
from command.machine.through import connect as through
from rpc.call import ServerCore
from rpc.network.tls import ALPN
from rpc.server.port import serve
from tests.loopback import listening

NOW = datetime.now(UTC)
ROOT = new_root("test", NOW)
NAME = "rover-main.home.local"
LOGIN = Connection("https://cloud.test", api_key_id="id", api_key="key", cloud=True)


@pytest.mark.parametrize(("name", "answers"), [(NAME, True), ("other.home.local", False)])
async def test_the_certificate_must_contain_the_name_of_the_part(
    name: str, answers: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaf = new_leaf(ROOT, (name, "127.0.0.1"), NOW)
    (tmp_path / "c.pem").write_text(leaf.certificate)
    (tmp_path / "k.pem").write_text(leaf.key)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "c.pem", tmp_path / "k.pem")
    server.set_alpn_protocols(ALPN)
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        await nursery.start(partial(serve, listeners, ServerCore({}), tls=server))
        _try_directly(monkeypatch, listeners[0].socket.getsockname()[1])
        async with through._directly(LOGIN, {"dns_name": NAME}) as channel:
            assert (channel is not None) is answers
        nursery.cancel_scope.cancel()


async def test_a_machine_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(through, "DIRECT_LIMIT", 0.1)

    async def stay_silent(stream: trio.SocketStream) -> None:
        await trio.sleep_forever()

    async with listening(stay_silent) as port:
        _try_directly(monkeypatch, port)
        with trio.fail_after(10):
            async with through._directly(LOGIN, {"dns_name": NAME}) as channel:
                assert channel is None


def _try_directly(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    async def trusted(login: Connection) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=ROOT.certificate)
        context.set_alpn_protocols(ALPN)
        return context

    monkeypatch.setattr(through, "direct_address", lambda part: f"127.0.0.1:{port}")
    monkeypatch.setattr(through, "machines_context", trusted)
