"""The stored record: round trips, damage, power cuts, and secrets."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from ipaddress import IPv4Interface
from pathlib import Path
from typing import Any

import pytest
import structlog.testing
from msgspec.structs import replace

from netmgr.model.network import Enterprise, Personal, StaticAddress, UsableNetwork
from netmgr.provisioning.states import JoinAttempt, Kept
from netmgr.store.store import COPY, DAMAGED, NetworkStore, load, save
from netmgr.store.stored import (
    ALPHABET,
    MAX_LEASES,
    PASSWORD_LENGTH,
    StoredNetworks,
    decode,
    encode,
    new_password,
    with_lease,
    with_network,
    without_network,
)
from tests.unit.netmgr.planning.support import lease

HOME = UsableNetwork(
    label="home", kind="wifi", source="portal", ssid=b"\xff\x00home", security=Personal(passphrase="secret!!")
)
OFFICE = UsableNetwork(
    label="office", kind="wifi", source="console", ssid=b"office",
    static=StaticAddress(address=IPv4Interface("10.0.0.5/24")),
    security=Enterprise(method="peap", identity="robot", password="secret!!"),
)  # fmt: skip
WHOLE = StoredNetworks(
    networks=(HOME, OFFICE),
    kept=Kept(ever_online=True, reboots=3, attempt=JoinAttempt(label="home", progress="failed", at=5.0)),
    managers={"wlan0": "NetworkManager"},
    addresses=(("wlan0", IPv4Interface("10.0.0.5/24")),),
    password="abc",
)


async def inline(function: Callable[[], Any]) -> Any:
    return function()


def test_round_trip() -> None:
    stored = with_lease(WHOLE, "wlan0", b"home", lease())
    assert decode(encode(stored)) == stored


def test_leases_are_remembered_by_network_and_bounded() -> None:
    stored = StoredNetworks()
    for number in range(MAX_LEASES + 5):
        stored = with_lease(stored, "wlan0", str(number).encode(), lease())
    assert len(stored.leases) == MAX_LEASES
    assert stored.lease("wlan0", b"0") is None
    assert stored.lease("wlan0", b"54") == lease()
    assert stored.lease("wlan1", b"54") is None


def test_a_network_replaces_the_one_with_its_label() -> None:
    other = replace(HOME, priority=5)
    assert with_network(WHOLE, other).networks == (other, OFFICE)
    assert without_network(WHOLE, "home").networks == (OFFICE,)


async def test_it_survives_a_restart_and_is_for_root_only(tmp_path: Path) -> None:
    path = tmp_path / "network.json"
    store = NetworkStore(path, inline)
    await store.load()
    password = store.stored.password
    assert len(password) == PASSWORD_LENGTH
    assert set(password) <= set(ALPHABET)
    await store.change(lambda stored: with_network(stored, HOME))
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    again = NetworkStore(path, inline)
    await again.load()
    assert again.stored == store.stored
    assert again.stored.password == password


def test_every_truncated_file_leaves_the_copy(tmp_path: Path) -> None:
    path = tmp_path / "network.json"
    save(path, WHOLE)
    save(path, replace(WHOLE, password="def"))
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with structlog.testing.capture_logs() as logs:
            assert load(path) == WHOLE
        assert "secret" not in str(logs)
        assert path.with_name(path.name + DAMAGED).exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"format": 2}',
        b'{"networks": [{"label": 5}]}',
        b"\xff",
        b'{"password": "secret!!"',
        b"{}" * 600_000,
    ],
)
def test_a_damaged_file_is_renamed_and_its_damage_logged(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "network.json"
    path.write_bytes(content)
    with structlog.testing.capture_logs() as logs:
        assert load(path) == StoredNetworks()
    assert logs[0]["event"] == "the stored networks cannot be used"
    assert "secret" not in str(logs)
    assert path.with_name(path.name + DAMAGED).read_bytes() == content


def test_a_crash_between_the_copy_and_the_file_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "network.json"
    save(path, WHOLE)
    calls: list[Path] = []

    def crash(target: Path, content: bytes) -> None:
        calls.append(target)
        if target == path:
            raise OSError(28, "No space left on device")
        target.write_bytes(content)

    monkeypatch.setattr("netmgr.store.store.replace_file", crash)
    with pytest.raises(OSError, match="No space"):
        save(path, replace(WHOLE, password="def"))
    assert calls == [path.with_name(path.name + COPY), path]
    assert load(path) == WHOLE


async def test_a_full_disk_is_a_problem_until_something_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "network.json"
    store = NetworkStore(path, inline)
    await store.load()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("netmgr.store.store.replace_file", full)
    await store.change(lambda stored: with_network(stored, HOME))
    assert store.stored.networks == (HOME,)
    assert "No space left on device" in store.problem
    monkeypatch.undo()
    await store.change(lambda stored: stored)
    assert store.problem == ""
    assert load(path) == store.stored


def test_no_text_form_has_a_secret() -> None:
    assert "secret" not in repr(WHOLE)
    assert "secret" not in repr(HOME)


def test_passwords_are_random() -> None:
    assert new_password() != new_password()
