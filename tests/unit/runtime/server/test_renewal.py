from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
import structlog
import trio
import trio.testing
import trustme
from structlog.testing import LogCapture

from rpc.network.tls import ServerTls
from runtime.server.port.renewal import renew


def issue(folder: Path, name: str) -> None:
    """Replace the certificate and the key by renaming new files over them."""
    leaf = trustme.CA().issue_cert(name)
    for file, pem in (("cert.pem", leaf.cert_chain_pems[0]), ("key.pem", leaf.private_key_pem)):
        pem.write_to_path(str(folder / f"{file}.part"))
        os.replace(folder / f"{file}.part", folder / file)


class Messages(LogCapture):
    """Capture log entries and wait for more."""

    def __init__(self) -> None:
        super().__init__()
        self.more = trio.Event()

    def __call__(self, logger: object, method_name: str, event_dict: structlog.typing.EventDict) -> NoReturn:
        self.more.set()
        super().__call__(logger, method_name, event_dict)

    async def until(self, done: Callable[[], bool]) -> None:
        with trio.fail_after(30):
            while not done():
                await self.more.wait()
                self.more = trio.Event()

    def words(self) -> list[str]:
        return [str(entry["event"]) for entry in self.entries]


@pytest.fixture
def messages() -> Messages:
    return Messages()


@pytest.fixture
def tls(tmp_path: Path) -> ServerTls:
    issue(tmp_path, "first.example")
    return ServerTls(tmp_path / "cert.pem", tmp_path / "key.pem")


async def test_a_new_certificate_replaces_the_context(
    nursery: trio.Nursery, tmp_path: Path, messages: Messages, tls: ServerTls
) -> None:
    before = tls.context
    nursery.start_soon(renew, tls, structlog.wrap_logger(None, processors=[messages]))
    await trio.testing.wait_all_tasks_blocked()
    issue(tmp_path, "second.example")
    await messages.until(lambda: "the certificate was renewed" in messages.words())
    assert tls.facts.names == ("second.example",)
    assert tls.context is not before
    nursery.cancel_scope.cancel()


async def test_a_bad_or_missing_file_keeps_the_old_one_and_is_mended(
    nursery: trio.Nursery, tmp_path: Path, messages: Messages, tls: ServerTls
) -> None:
    nursery.start_soon(renew, tls, structlog.wrap_logger(None, processors=[messages]))
    await trio.testing.wait_all_tasks_blocked()
    before = tls.context
    (tmp_path / "key.pem").unlink()
    await messages.until(lambda: len(messages.entries) == 1)
    assert messages.words() == ["the new certificate cannot be used; the current one is kept"]
    assert "key.pem cannot be read" in messages.entries[0]["reason"]
    (tmp_path / "cert.pem").write_text("nonsense")
    await messages.until(lambda: len(messages.entries) == 2)
    assert "no readable PEM certificate" in messages.entries[1]["reason"]
    assert tls.context is before
    issue(tmp_path, "third.example")
    await messages.until(lambda: "the certificate was renewed" in messages.words())
    assert tls.facts.names == ("third.example",)
    nursery.cancel_scope.cancel()
