"""`machine-cloud ca`, and invalid TLS options."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from click.testing import CliRunner, Result
from cryptography import x509

from cloud.domain.organizations.first import first_start
from cloud.server.cli import command
from cloud.store.events import Events
from cloud.store.sqlite import SqliteStore
from cloud.values.times import now


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the database of a cloud that was started once."""

    async def main() -> None:
        async with SqliteStore(tmp_path / "cloud.db", Events()).opened() as store:
            await store.write(lambda sql: first_start(sql, "Home", now()))

    trio.run(main)
    return tmp_path


def run(*words: object) -> Result:
    return CliRunner().invoke(command, [str(word) for word in words])


def roots(folder: Path) -> list[x509.Certificate]:
    done = run("--data", folder, "ca")
    assert done.exit_code == 0, done.output
    assert "PRIVATE" not in done.output
    return x509.load_pem_x509_certificates(done.output.encode())


def test_the_command_prints_the_authorities_to_trust(folder: Path) -> None:
    result = roots(folder)
    assert len(result) == 2
    assert roots(folder) == result
    text = run("--data", folder, "ca").output
    assert "the cloud itself" in text
    assert "machines of Home" in text


def test_a_rotation_adds_authorities_and_keeps_the_old_ones(folder: Path) -> None:
    before = roots(folder)
    done = run("--data", folder, "ca", "rotate", "--yes")
    assert done.exit_code == 0, done.output
    assert "90 more days" in done.output
    after = roots(folder)
    assert len(after) == 4
    assert set(before) < set(after)


def test_a_rotation_for_a_leaked_key_keeps_only_the_new_authorities(folder: Path) -> None:
    before = roots(folder)
    assert run("--data", folder, "ca", "rotate", "--now", "--yes").exit_code == 0
    after = roots(folder)
    assert len(after) == 2
    assert not set(before) & set(after)


def test_a_rotation_needs_confirmation(folder: Path) -> None:
    before = roots(folder)
    assert CliRunner().invoke(command, ["--data", str(folder), "ca", "rotate"], input="n\n").exit_code == 1
    assert roots(folder) == before


def test_without_a_cloud_no_authority_is_created(tmp_path: Path) -> None:
    done = run("--data", tmp_path / "nothing", "ca")
    assert done.exit_code == 1
    assert "there is no cloud in" in done.output
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--tls-name", "a"], "--tls-name requires --tls"),
        (["--tls", "--tls-name", "a b"], "neither a DNS name nor an address"),
        (["--tls", "--url", "http://cloud.example"], "--url https://cloud.example"),
        (["--tls", "--tls-cert", __file__, "--tls-key", __file__], "leave out one of them"),
        (["--machine-domain", "*.machines.example"], "'*.machines.example' is not a DNS name"),
        (["--tls-cert", __file__], "must be used together"),
        (["--proxy", "10.0.0.1", "--proxy", "proxy.example"], "--proxy: 'proxy.example' does not appear to be"),
        (["--proxy", "10.0.0.7/24"], "10.0.0.7/24 has host bits set"),
    ],
)
def test_incompatible_options(words: list[str], text: str) -> None:
    done = run(*words)
    assert done.exit_code == 2
    assert text in done.output
