"""The authorities by which a machine trusts its cloud: its own file, and later updates by the cloud, in every order."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from cloud.domain.certificates.issue import crossed, fingerprint, new_leaf, new_root
from runtime.parts.data.files.disk import InlineDisk
from support.worker import Worker
from uplink.authorities import MAX_LENGTH, CloudAuthorities, authorities_path
from uplink.dial import CloudAddress

NOW = datetime.now(UTC)
PAIRS = {name: new_root(name, NOW) for name in ("old", "new", "newest", "machines", "proxy")}
OLD, NEW, NEWEST, MACHINES, PROXY = (pair.certificate for pair in PAIRS.values())
DISK = cast("Worker", InlineDisk())


class Trusting:
    """A machine's trust, with its files under control of the test."""

    def __init__(self, folder: Path, value: str | None) -> None:
        self.file = folder / "ca.pem" if value is not None else None
        self.path = authorities_path(folder / "home", "part-1")
        self.give(value or "")
        self.restart()

    def give(self, text: str) -> None:
        if self.file is not None:
            self.file.write_text(text)

    def restart(self) -> None:
        self.held = CloudAuthorities(self.file, self.path)
        self.held.load()

    async def update(self, cloud: str, machines: str = "") -> None:
        await self.held.update({"cloud": cloud, "machines": machines}, DISK)

    def trusts(self) -> set[str]:
        """Return the names of the authorities by which the cloud is trusted."""
        learned = self.held.trusted()
        text = learned or (self.file.read_text() if self.file is not None else "")
        return {name for name, pair in PAIRS.items() if pair.certificate in text}


@pytest.fixture
def messages() -> Iterator[Sequence[Any]]:
    """Capture the log."""
    with capture_logs() as entries:
        yield entries


async def test_a_machine_that_was_there_needs_no_new_file(tmp_path: Path, messages: Sequence[Any]) -> None:
    machine = Trusting(tmp_path, OLD)
    await machine.update(OLD)
    assert machine.trusts() == {"old"}
    assert not messages
    await machine.update(NEW + OLD)  # the overlap
    assert machine.trusts() == {"old", "new"}
    await machine.update(NEW)  # and the end of the overlap
    assert machine.trusts() == {"new"}
    machine.restart()
    assert machine.trusts() == {"new"}
    assert (tmp_path / "ca.pem").read_text() == OLD
    assert oct(machine.path.stat().st_mode & 0o777) == "0o600"
    assert [(message["new"], message["withdrawn"]) for message in messages] == [
        ([fingerprint(NEW)], []),
        ([], [fingerprint(OLD)]),
    ]
    assert all(item["ca_file"] == f"{tmp_path / 'ca.pem'}, which is not changed" for item in messages)


async def test_one_that_leaked_is_not_trusted_although_the_file_has_it(tmp_path: Path) -> None:
    machine = Trusting(tmp_path, OLD + MACHINES)
    await machine.update(OLD, MACHINES)
    assert machine.trusts() == {"old"}  # the authority of machines does not sign certificates of clouds
    await machine.update(NEW, NEWEST)
    assert machine.trusts() == {"new"}
    assert machine.held.machines == NEWEST
    machine.restart()
    assert machine.trusts() == {"new"}
    assert machine.held.machines == NEWEST


async def test_others_in_the_file_count_as_before(tmp_path: Path) -> None:
    machine = Trusting(tmp_path, PROXY + OLD)
    await machine.update(OLD)
    await machine.update(NEW)
    assert machine.trusts() == {"proxy", "new"}


@pytest.mark.parametrize("value", [PROXY, "", "no certificate", None])
async def test_a_cloud_that_is_trusted_by_another_authority_says_nothing_of_it(
    tmp_path: Path, value: str | None, messages: Sequence[Any]
) -> None:
    machine = Trusting(tmp_path, value)
    await machine.update(OLD, MACHINES)
    await machine.update(NEW, MACHINES)
    assert machine.held.trusted() == ""
    assert machine.held.machines == MACHINES
    assert not messages


async def test_another_file_starts_from_the_beginning(tmp_path: Path) -> None:
    machine = Trusting(tmp_path, OLD)
    await machine.update(OLD)
    machine.give(NEWEST)  # it was offline while the authority was replaced twice
    assert machine.trusts() == {"newest"}
    await machine.update(NEWEST)
    machine.give("-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n")
    assert machine.held.trusted() == ""  # the damaged file is reported where it is used
    assert machine.file is not None
    machine.file.unlink()
    assert machine.held.trusted() == ""


async def test_a_cloud_that_says_nothing_more_of_itself_changes_nothing(tmp_path: Path) -> None:
    machine = Trusting(tmp_path, OLD)
    await machine.update(NEW + OLD)
    await machine.held.update({"machines": MACHINES}, DISK)
    assert machine.trusts() == {"old", "new"}
    assert machine.held.machines == MACHINES


@pytest.mark.parametrize(
    "wrong", [5, [], {"cloud": 5}, {"cloud": "x"}, {"machines": "x"}, {"cloud": OLD * (MAX_LENGTH // len(OLD) + 1)}]
)
async def test_invalid_authorities_are_refused_and_change_nothing(tmp_path: Path, wrong: Any) -> None:
    machine = Trusting(tmp_path, OLD)
    await machine.update(NEW + OLD)
    with pytest.raises((TypeError, ValueError)):
        await machine.held.update(wrong, DISK)
    assert machine.trusts() == {"old", "new"}


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b'{"cloud": 5}'])
async def test_a_damaged_file_is_reported_and_replaced(tmp_path: Path, content: bytes, messages: Sequence[Any]) -> None:
    machine = Trusting(tmp_path, OLD)
    machine.path.parent.mkdir()
    machine.path.write_bytes(content)
    machine.restart()
    assert [message["path"] for message in messages] == [str(machine.path)]
    assert machine.trusts() == {"old"}
    await machine.update(NEW + OLD)
    machine.restart()
    assert machine.trusts() == {"old", "new"}


async def test_without_a_disk_it_counts_until_the_next_start(tmp_path: Path, messages: Sequence[Any]) -> None:
    machine = Trusting(tmp_path, OLD)
    (tmp_path / "home").write_text("no folder")
    await machine.update(NEW + OLD)
    assert machine.trusts() == {"old", "new"}
    assert [message["log_level"] for message in messages] == ["info", "error"]


async def test_the_connection_follows(tmp_path: Path) -> None:
    """The contexts for connections to the cloud accept or refuse a port of each authority."""
    machine = Trusting(tmp_path, OLD)
    address = CloudAddress(
        "https://localhost", "part-1", "part-1", "robot-secret", "s", machine.file, learned=machine.held.trusted
    )

    def reaches(name: str, *between: str) -> bool:
        leaf = new_leaf(PAIRS[name], ["localhost"], NOW)
        context = address.tls()
        assert context is not None
        return _shakes_hands(tmp_path, leaf.certificate + "".join(between), leaf.key, context)

    cross = crossed(PAIRS["old"], PAIRS["new"])
    await machine.update(OLD)
    assert reaches("old")
    assert not reaches("new")
    assert reaches("new", cross)  # for a machine that was offline during the whole overlap
    await machine.update(NEW + OLD)
    assert reaches("new")
    await machine.update(NEW)
    assert reaches("new")
    assert not reaches("old")


def _shakes_hands(folder: Path, chain: str, key: str, client: ssl.SSLContext) -> bool:
    both = folder / "both.pem"
    both.write_text(key + chain)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(both)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = (
        client.wrap_bio(back, there, server_hostname="localhost"),
        server.wrap_bio(there, back, server_side=True),
    )
    done = 0
    for _ in range(10):
        for side in sides:
            try:
                side.do_handshake()
                done += 1
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError:
                return False
        if done >= 2:
            return True
    raise AssertionError("no end")
