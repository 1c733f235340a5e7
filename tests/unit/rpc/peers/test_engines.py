"""Choice of the engine, and its loading only when it is used."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rpc.peers.engines import ENGINES, engine_installed, load_engine
from rpc.peers.port import IceServer, PeerOptions
from rpc.peers.servers import MAX_URLS, check_servers
from schema.errors import ErrorKind, MachineError

MISSING = "raise ImportError('no such library')"


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Return a function that writes modules and returns their names."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(**sources: str) -> list[str]:
        for name, source in sources.items():
            (tmp_path / f"{name}.py").write_text(source)
        return list(sources)

    return write


def test_the_first_engine_that_can_be_imported_is_chosen(modules: Callable[..., list[str]]) -> None:
    names = modules(absent_engine=MISSING, second_engine="", third_engine="raise AssertionError")
    assert load_engine(names).__name__ == "second_engine"


def test_without_an_engine_the_error_names_the_extra(modules: Callable[..., list[str]]) -> None:
    with pytest.raises(MachineError) as caught:
        load_engine(modules(missing_engine=MISSING, wanting_engine=MISSING))
    assert caught.value.kind is ErrorKind.UNSUPPORTED
    assert "machine-runtime[webrtc]" in caught.value.remedy
    assert "no such library" in str(caught.value)


def test_an_engine_with_a_defect_is_not_skipped(modules: Callable[..., list[str]]) -> None:
    with pytest.raises(AttributeError):
        load_engine(modules(defective_engine="raise AttributeError", other_engine=""))


def test_the_engine_does_not_load_asyncio() -> None:
    pytest.importorskip("wrtc")
    code = (
        "import sys, rpc.peers.engines as engines\n"
        "assert not {'wrtc', 'webrtc', 'aiortc', 'asyncio'} & set(sys.modules)\n"
        "assert engines.load_engine().__name__ == 'rpc.peers.wrtc_engine'\n"
        "assert not {'asyncio', 'aiortc', 'trio_asyncio'} & set(sys.modules), set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ENGINES)
def test_every_engine_has_a_context_manager(name: str) -> None:
    if not engine_installed():
        pytest.skip("no engine is installed")
    code = f"import rpc.peers.engines as engines; assert callable(engines.load_engine([{name!r}]).open_engine)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    if "no WebRTC engine" in done.stderr:
        pytest.skip(f"{name}: its library is not installed")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "url",
    [
        "stun:stun.example.com",
        "stun:192.0.2.1:3478",
        "stuns:[2001:db8::1]:5349",
        "turn:turn.example.com:3478?transport=udp",
        "turns:turn.example.com?transport=tcp",
    ],
)
def test_valid_servers_are_accepted(url: str) -> None:
    check_servers(PeerOptions((IceServer((url,), "user", "password"),)))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "http://secret",
        "stun:",
        "stun:host:0",
        "stun:host:65536",
        "stun:host:x",
        "stun:host?transport=udp",
        "turn:host?transport=sctp",
        "turn:user@host",
        "turn:host\n",
        "turn:h\0st",
    ],
)
def test_invalid_servers_are_refused_without_quoting_them(url: str) -> None:
    with pytest.raises(MachineError) as caught:
        check_servers(PeerOptions((IceServer((url,), "user", "secret"),)))
    assert caught.value.kind is ErrorKind.INVALID
    assert "secret" not in str(caught.value)


def test_relays_need_credentials_and_servers_are_few() -> None:
    for options in (
        PeerOptions((IceServer(("turn:host",)),)),
        PeerOptions((IceServer(("turn:host",), "user"),)),
        PeerOptions((IceServer(("stun:host",) * (MAX_URLS + 1)),)),
    ):
        with pytest.raises(MachineError):
            check_servers(options)
