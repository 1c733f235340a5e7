"""How a cloud certificate affects the port, and how a machine connects to a cloud with TLS."""

from __future__ import annotations

import errno
import json
import os
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trio

from cloud.domain.certificates.issue import CertificatePair, new_leaf, new_root
from engine.options import Options
from rpc.call import ServerCore
from rpc.network.listeners import open_listeners
from rpc.network.tls import InMemoryTls, TlsError
from rpc.server.port import serve
from runtime.parts.cloud.link import open_link, reached_at
from runtime.server.port.serving import bind_address, server_tls
from schema.document.cloud import Cloud
from schema.document.machine import MachineDocument, decode_document
from schema.errors import MachineError
from uplink.dial import CloudAddress, CloudUnavailable, address_of, connected

NOW = datetime.now(UTC)
ROOT = new_root("test", NOW)
LEAF = new_leaf(ROOT, ("localhost",), NOW)
KEYS = {"auth": {"handlers": [{"type": "api-key", "config": {"id": "key", "keys": ["id"]}}]}}


def document(**sections: Any) -> MachineDocument:
    decoded = decode_document(json.dumps(sections).encode()).document
    assert decoded is not None
    return decoded


def options(*, no_tls: bool = False) -> Options:
    return Options(config=Path("m.json"), no_tls=no_tls)


def held(pair: CertificatePair | None = LEAF) -> InMemoryTls:
    tls = InMemoryTls(plain_locally=True)
    if pair is not None:
        tls.take(pair.certificate.encode(), pair.key.encode())
    return tls


# ---- its files


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "free some space there"),
        (errno.EROFS, "mount its file system for writing"),
        (
            errno.EIO,
            "read `dmesg`, copy the files from the disk and replace it",
        ),
        (errno.EACCES, "allow this user to write there"),
    ],
)
def test_a_folder_that_cannot_be_used_is_reported_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, remedy: str
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("runtime.parts.cloud.link.Outbox", refuse)
    with pytest.raises(MachineError) as caught:
        open_link(Cloud(id="p", secret="s", app_address="http://c"), b"{}", {"MACHINE_HOME": str(tmp_path)})
    assert f"{tmp_path}/logs-outbox cannot be used: {os.strerror(number)}" in str(caught.value)
    assert caught.value.remedy == f"{remedy}, or set MACHINE_HOME to another folder"


# ---- the port


@pytest.mark.parametrize(
    ("sections", "no_tls", "value", "address"),
    [
        (KEYS, False, held(), ":8080"),
        (KEYS, False, held(None), "localhost:8080"),  # there is no certificate yet
        (KEYS, False, None, "localhost:8080"),
        ({}, False, held(), "localhost:8080"),  # without keys, any client has full access
        (KEYS, True, held(), "localhost:8080"),
        ({**KEYS, "network": {"no_tls": True}}, False, held(), "localhost:8080"),
        ({**KEYS, "network": {"bind_address": "localhost:1234"}}, False, held(), "localhost:1234"),
        ({**KEYS, "network": {"tls_cert_file": "c", "tls_key_file": "k"}}, False, held(), "localhost:8080"),
    ],
)
def test_where_a_machine_listens(
    sections: Mapping[str, Any], no_tls: bool, value: InMemoryTls | None, address: str
) -> None:
    assert bind_address(document(**sections), options(no_tls=no_tls), value) == address


def test_which_certificate_counts(tmp_path: Path) -> None:
    passed = held()
    (tmp_path / "c.pem").write_text(LEAF.certificate)
    (tmp_path / "k.pem").write_text(LEAF.key)
    files = {"tls_cert_file": str(tmp_path / "c.pem"), "tls_key_file": str(tmp_path / "k.pem")}
    named = server_tls(document(network=files).network, options(), passed)
    assert named is not None
    assert named is not passed
    assert not named.plain_locally
    assert server_tls(document().network, options(), passed) is passed
    assert server_tls(document().network, options()) is None
    for sections, no_tls in (({}, True), ({"no_tls": True, **files}, False)):
        assert server_tls(document(network=sections).network, options(no_tls=no_tls), passed) is None
    with pytest.raises(TlsError):
        server_tls(document(network={**files, "tls_key_file": "missing"}).network, options(), passed)


@pytest.mark.parametrize(
    ("addresses", "reported"),
    [((), ""), (("127.0.0.1:8080", "[::1]:8080"), "127.0.0.1:8080"), (("[fd00::7]:1",), "[fd00::7]:1")],
)
def test_the_address_that_is_reported_to_the_cloud(addresses: tuple[str, ...], reported: str) -> None:
    assert reached_at(addresses) == reported


@pytest.mark.parametrize("address", ["0.0.0.0:8080", "[::]:8080"])
def test_a_port_for_all_interfaces_is_reported_with_an_address(address: str) -> None:
    result = reached_at((address,))
    assert result.endswith(":8080")
    assert not result.startswith(("0.0.0.0", "[::]"))


# ---- the link


def credentials(url: str, **more: str) -> Cloud:
    return Cloud(id="p", secret="hush", app_address=url, **more)


def test_authorities_are_named_from_the_folder_of_the_credentials(tmp_path: Path) -> None:
    cloud = credentials("https://cloud.example", ca_file="ca.pem")
    assert address_of(cloud, tmp_path).authorities == tmp_path / "ca.pem"
    absolute = credentials("https://cloud.example", ca_file="/etc/ca.pem")
    assert address_of(absolute, tmp_path).authorities == Path("/etc/ca.pem")


@pytest.mark.parametrize(("url", "secure"), [("https://cloud.example", True), ("http://localhost:8090", False)])
def test_only_over_tls_there_is_a_certificate(url: str, secure: bool, tmp_path: Path) -> None:
    environment = {"MACHINE_HOME": str(tmp_path)}
    cloud = credentials(url)
    link = open_link(cloud, json.dumps({"cloud": {"id": "p"}}).encode(), environment, tmp_path)
    assert (link.certificate is not None) is secure
    assert (link.address.tls() is not None) is secure


@asynccontextmanager
async def port(tls: InMemoryTls | None) -> AsyncIterator[int]:
    """Open a TLS port without any RPC."""
    listeners = await open_listeners("localhost:0")
    async with trio.open_nursery() as nursery:
        await nursery.start(lambda task_status: serve(listeners, ServerCore({}), tls=tls, task_status=task_status))
        yield listeners[0].socket.getsockname()[1]
        nursery.cancel_scope.cancel()


async def refused(address: CloudAddress) -> str:
    with trio.fail_after(30), pytest.raises(CloudUnavailable) as caught:
        async with connected(address):
            pass
    return str(caught.value)


@pytest.mark.parametrize("ca_file", ["", "other.pem"])
async def test_a_cloud_that_is_not_trusted(ca_file: str, tmp_path: Path) -> None:
    (tmp_path / "other.pem").write_text(new_root("other", NOW).certificate)
    async with port(held()) as number:
        text = await refused(address_of(credentials(f"https://localhost:{number}", ca_file=ca_file), tmp_path))
    assert "CERTIFICATE_VERIFY_FAILED" in text
    assert "`machine-cloud ca`" in text
    assert (str(tmp_path / "other.pem") if ca_file else "`ca_file`") in text
    assert "hush" not in text


@pytest.mark.parametrize(
    ("from_now", "words"), [(timedelta(days=30), "is not yet valid"), (timedelta(days=-900), "has expired")]
)
async def test_a_certificate_of_another_time_may_be_a_wrong_clock(
    from_now: timedelta, words: str, tmp_path: Path
) -> None:
    """Small computers without a clock battery start with a wrong date."""
    root = new_root("test", NOW - timedelta(days=1000))
    (tmp_path / "ca.pem").write_text(root.certificate)
    leaf = new_leaf(root, ("localhost",), NOW + from_now)
    async with port(held(leaf)) as number:
        text = await refused(address_of(credentials(f"https://localhost:{number}", ca_file="ca.pem"), tmp_path))
    assert words in text
    assert "set this computer's clock, which says 20" in text


async def test_a_cloud_by_a_name_that_its_certificate_has_not(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(ROOT.certificate)
    async with port(held()) as number:
        text = await refused(address_of(credentials(f"https://127.0.0.1:{number}", ca_file="ca.pem"), tmp_path))
    assert "a name that its certificate contains" in text


async def test_a_cloud_without_tls(tmp_path: Path) -> None:
    async with port(None) as number:
        text = await refused(address_of(credentials(f"https://localhost:{number}"), tmp_path))
    assert "http://" in text
    assert "--tls" in text


async def test_authorities_that_are_not_there(tmp_path: Path) -> None:
    text = await refused(address_of(credentials("https://localhost:1", ca_file="ca.pem"), tmp_path))
    assert str(tmp_path / "ca.pem") in text
    assert "check the path" in text


async def test_a_trusted_cloud_is_spoken_to(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(ROOT.certificate)
    async with port(held()) as number:
        address = address_of(credentials(f"https://localhost:{number}", ca_file="ca.pem"), tmp_path)
        text = await refused(address)  # this port serves no RPC
    assert text == "refused with HTTP status 404: there are no pages on this port"
    context = address.tls("http/1.1")
    assert context is not None
    assert context.verify_mode is ssl.CERT_REQUIRED
