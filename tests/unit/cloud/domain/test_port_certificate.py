"""The certificate of the cloud's own port: created, renewed and loaded from files while the port serves."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
import structlog
import trio
import trio.testing

from cloud.domain.certificates import authorities
from cloud.domain.certificates.authorities import PORT
from cloud.domain.certificates.issue import CertificatePair, new_leaf, new_root
from cloud.domain.certificates.machine_names import LOOPBACK
from cloud.domain.certificates.port import FromAuthority, FromFiles, port_names
from cloud.server.memory import MemoryCloud
from cloud.values.times import now
from rpc.network.tls import TlsError
from schema.errors import ConfigError
from tests.unit.cloud.conftest import Clock
from tests.unit.runtime.server.test_renewal import Messages


class Port:
    """A certificate of the authority for names that the test sets."""

    def __init__(self, cloud: MemoryCloud, clock: Clock, **times: timedelta) -> None:
        self.names: Sequence[str] = ("cloud.example", *LOOPBACK)
        self.made = FromAuthority(cloud.cloud.store, cloud.cloud.events, lambda: self.names, clock, **times)


@pytest.fixture
def messages() -> Iterator[Messages]:
    """Capture the log."""
    result, processors = Messages(), structlog.get_config()["processors"]  # in place: loggers may already be cached
    before, processors[:] = [*processors], [result]
    yield result
    processors[:] = before


@pytest.fixture
def port(cloud: MemoryCloud, clock: Clock) -> Port:
    return Port(cloud, clock)


async def test_a_certificate_is_kept_until_there_is_a_reason_to_renew_it(port: Port, clock: Clock) -> None:
    assert port.made.context is None
    assert await port.made.look()
    context = port.made.context
    clock.now += port.made.renewed - timedelta(hours=1)
    assert not await port.made.look()
    assert port.made.context is context
    assert port.made.names == ("cloud.example",)


async def test_age_names_and_authority_are_reasons_to_renew(port: Port, cloud: MemoryCloud, clock: Clock) -> None:
    await port.made.look()
    clock.now += port.made.renewed
    assert await port.made.look()
    port.names = ("other.example", *LOOPBACK)
    assert await port.made.look()
    assert port.made.names == ("other.example",)
    await cloud.cloud.store.write(lambda sql: authorities.rotate(sql, PORT, clock()))
    assert await port.made.look()
    assert not await port.made.look()


async def test_a_clock_that_was_set_back_is_a_reason_to_renew(port: Port, clock: Clock) -> None:
    await port.made.look()
    clock.now -= timedelta(days=400)
    assert await port.made.look()


async def test_a_rotation_takes_effect_immediately(
    port: Port, cloud: MemoryCloud, clock: Clock, nursery: trio.Nursery, messages: Messages
) -> None:
    await port.made.look()
    before = port.made.context
    nursery.start_soon(port.made.run)
    await trio.testing.wait_all_tasks_blocked(0.05)  # wait until it listens
    await cloud.cloud.store.write(lambda sql: authorities.rotate(sql, PORT, clock()))
    await messages.until(lambda: port.made.context is not before)
    nursery.cancel_scope.cancel()


async def test_a_short_lived_certificate_is_renewed_repeatedly(
    cloud: MemoryCloud, nursery: trio.Nursery, messages: Messages
) -> None:
    port = FromAuthority(
        cloud.cloud.store,
        cloud.cloud.events,
        lambda: LOOPBACK,
        now,
        life=timedelta(seconds=5),
        renewed=timedelta(seconds=0.1),
    )
    await port.look()
    nursery.start_soon(port.run)
    first = port.context
    await messages.until(lambda: len(messages.words()) >= 4)
    assert port.context is not first
    nursery.cancel_scope.cancel()


# ---- files


def write(folder: Path, pair: CertificatePair) -> tuple[Path, Path]:
    """Replace each file by renaming, as certbot swaps its links."""
    results = []
    for name, text in (("cert.pem", pair.certificate), ("key.pem", pair.key)):
        (folder / f"{name}.part").write_text(text)
        os.replace(folder / f"{name}.part", folder / name)
        results.append(folder / name)
    return results[0], results[1]


def leaf(name: str) -> CertificatePair:
    return new_leaf(new_root("test", now()), (name, "localhost"), now())


async def test_renewed_files_take_effect_unless_they_are_invalid(
    tmp_path: Path, nursery: trio.Nursery, messages: Messages
) -> None:
    files = FromFiles(*write(tmp_path, leaf("first.example")))
    assert files.names == ("first.example",)
    assert not files.own
    nursery.start_soon(files.run)

    write(tmp_path, leaf("second.example"))
    await messages.until(lambda: files.names == ("second.example",))
    context = files.context
    (tmp_path / "cert.pem").write_text(leaf("third.example").certificate)  # does not match the key
    await messages.until(lambda: messages.entries[-1]["log_level"] == "error")
    assert files.context is context
    assert "does not belong" in messages.entries[-1]["reason"]
    write(tmp_path, leaf("fourth.example"))
    await messages.until(lambda: files.names == ("fourth.example",))
    nursery.cancel_scope.cancel()


def test_unusable_files_prevent_the_start(tmp_path: Path) -> None:
    with pytest.raises(TlsError, match=r"missing\.pem"):
        FromFiles(tmp_path / "missing.pem", tmp_path / "key.pem")


# ---- names


def test_a_loopback_port_has_only_loopback_names() -> None:
    assert port_names("localhost:8090", "", ()) == LOOPBACK
    assert port_names("127.0.0.1:8090", "", ()) == ("127.0.0.1", "localhost", "::1")
    assert port_names("192.168.7.1:8090", "", ()) == ("192.168.7.1", *LOOPBACK)


def test_configured_names_come_first() -> None:
    names = port_names("localhost:8090", "https://Cloud.Example:8443", ("a.example", "[fd00::1]"))
    assert names[:3] == ("a.example", "fd00::1", "cloud.example")


def test_a_machine_domain_adds_a_wildcard_name() -> None:
    names = port_names("localhost:8090", "", (), machine_domain="machines.example")
    assert names == ("*.machines.example", *LOOPBACK)


@pytest.mark.parametrize("listen", ["0.0.0.0:8090", ":8090", "[::]:8090"])
def test_a_port_for_all_interfaces_has_the_names_of_the_computer(listen: str) -> None:
    names = port_names(listen, "", ())
    assert set(LOOPBACK) < set(names)
    assert any(name.endswith(".local") for name in names)
    assert len(set(names)) == len(names)


def test_an_invalid_address_is_reported() -> None:
    with pytest.raises(ConfigError, match="--listen"):
        port_names("nonsense", "", ())
