"""The cached configuration of the cloud, for a start without the cloud."""

from __future__ import annotations

import errno
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
import structlog.testing
import trio
import trio.testing
from trio.testing import MockClock
from trio_websocket import ConnectionClosed

from runtime.parts.data.files.disk import InlineDisk
from runtime.server.memory import open_machine
from uplink import cached
from uplink.configuration import FIRST_ANSWER, FIRST_DELAY, MAX_DELAY, SAVE_AGAIN, SILENCE, CloudSource
from uplink.dial import CloudAddress, CloudUnavailable
from uplink.files import FileReading

if TYPE_CHECKING:
    from trio_websocket import WebSocketConnection

    from support.worker import Worker

OWN = {"cloud": {"id": "part-1", "secret": "s", "app_address": "http://localhost:9"}}


def said(**document: Any) -> str:
    return json.dumps({"revision": "7", "document": document, "cloud": {}, "keys": {}})


class Cloud(CloudSource):
    """A cloud whose machine is never connected; the test plays the cloud."""

    def __init__(self, home: Path) -> None:
        address = CloudAddress("http://localhost:9", "part-1", "part-1", "robot-secret", "s")
        super().__init__(address, json.dumps(OWN).encode(), home, cast("Worker", InlineDisk()))
        self.path = cached.path_of(home, "part-1")

    def kept(self) -> Any:
        """Return the components of a start without the cloud."""
        loaded = cached.load(self.path)
        return json.loads(bytes(loaded.document)).get("components") if loaded is not None else None

    @property
    def reading(self) -> FileReading:
        return self._reading


async def test_a_usable_document_from_the_cloud_is_cached(tmp_path: Path) -> None:
    cloud = Cloud(tmp_path)
    await cloud.used(cloud.reading)
    assert not cloud.path.exists(), "the credentials file is not a configuration of the cloud"
    await cloud._handle(said(components=[1]))
    assert cloud.kept() is None
    await cloud.used(cloud.reading)
    assert cloud.kept() == [1]
    await cloud._handle(said(components=5))  # not confirmed as usable
    assert cloud.kept() == [1]
    await cloud._handle(said(components=[2]))
    await cloud.used(FileReading(b"{}"))
    assert cloud.kept() == [1]
    await cloud.used(cloud.reading)
    assert cloud.kept() == [2]


async def test_variables_in_documents_from_the_cloud_are_not_expanded(tmp_path: Path) -> None:
    cloud = Cloud(tmp_path)
    assert cloud.reading.expand, "the credentials file is this computer's own"
    await cloud._handle(said(revision="pa$$word ${HOME}"))
    assert not cloud.reading.expand


async def test_a_configuration_that_cannot_be_kept_is_used_all_the_same(tmp_path: Path) -> None:
    cloud = Cloud(tmp_path)
    cloud.path.mkdir(parents=True)
    await cloud._handle(said(components=[1]))
    await cloud.used(cloud.reading)
    assert cloud.path.is_dir()


async def test_a_document_is_cached_once_a_full_disk_has_room(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    cloud = Cloud(tmp_path)
    await cloud._handle(said(components=[1]))
    await cloud.used(cloud.reading)
    with structlog.testing.capture_logs() as logs:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cloud._save_again)
            monkeypatch.setattr(cached, "replace_file", full)
            for number in (2, 3):
                await cloud._handle(said(components=[number]))
                await cloud.used(cloud.reading)
            await trio.sleep(3 * SAVE_AGAIN)
            assert cloud.kept() == [1]
            monkeypatch.undo()
            await trio.sleep(2 * SAVE_AGAIN)
            assert cloud.kept() == [3]
            nursery.cancel_scope.cancel()
    assert [entry["event"] for entry in logs] == [
        "the configuration cannot be cached for a start without the cloud",
        "the configuration is cached for a start without the cloud again",
    ]
    assert logs[0]["remedy"] == "free disk space or allow this user to write there; retried every 30 s"


class Socket:
    """A silent push channel that ends after `lasts` seconds."""

    closed = None

    def __init__(self, lasts: float) -> None:
        self._lasts = lasts

    async def get_message(self) -> str:
        await trio.sleep(self._lasts)
        raise ConnectionClosed(None)

    async def ping(self) -> None:
        """Answer."""

    async def send_message(self, text: str) -> None:
        """Take a message."""


async def test_a_machine_that_was_stopped_does_not_hang_up_on_its_cloud(
    mock_clock: MockClock, nursery: trio.Nursery, tmp_path: Path
) -> None:
    class Socket:
        pong = trio.Event()

        async def ping(self) -> None:
            await self.pong.wait()
            await trio.lowlevel.checkpoint()

    scope = trio.CancelScope()
    nursery.start_soon(Cloud(tmp_path)._ping, cast("WebSocketConnection", Socket()), scope)
    await trio.testing.wait_all_tasks_blocked()
    mock_clock.jump(SILENCE / 2)
    await trio.testing.wait_all_tasks_blocked()
    Socket.pong.set()  # the answer has arrived, and the limit has passed
    mock_clock.jump(SILENCE)
    await trio.testing.wait_all_tasks_blocked()
    assert not scope.cancel_called


async def test_a_cloud_that_hangs_up_at_once_is_called_ever_more_seldom(
    autojump_clock: MockClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[float] = []
    lasts = 0.1

    @asynccontextmanager
    async def connected(address: CloudAddress) -> AsyncIterator[Socket]:
        called.append(trio.current_time())
        yield Socket(lasts)

    def gap() -> float:
        return called[-1] - called[-2]

    monkeypatch.setattr("uplink.configuration.connected", connected)
    async with Cloud(tmp_path).readings():
        await trio.sleep(600)
        assert MAX_DELAY / 2 <= gap() <= MAX_DELAY + lasts
        assert called[1] - called[0] <= FIRST_DELAY + lasts
        lasts = MAX_DELAY + 1
        await trio.sleep(600)
        assert gap() <= lasts + FIRST_DELAY


async def test_a_machine_that_stops_says_so_to_the_cloud(
    autojump_clock: MockClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []

    class Listening(Socket):
        async def send_message(self, text: str) -> None:
            await trio.lowlevel.checkpoint()
            sent.append(text)

    @asynccontextmanager
    async def connected(address: CloudAddress) -> AsyncIterator[Socket]:
        yield Listening(lasts)

    monkeypatch.setattr("uplink.configuration.connected", connected)
    lasts = 0.1
    async with Cloud(tmp_path).readings():
        pass
    assert sent == [], "it waits for its next attempt"
    lasts = 1000
    async with Cloud(tmp_path).readings():
        pass
    assert sent == ['{"goodbye": true}']
    sent.clear()
    with trio.move_on_after(5):  # as in a shutdown by cancellation
        async with Cloud(tmp_path).readings():
            await trio.sleep_forever()
    assert sent == ['{"goodbye": true}']


class Answering(Socket):
    """A push channel that sends one document `after` some seconds."""

    def __init__(self, after: float) -> None:
        super().__init__(lasts=1000)
        self._messages = iter([(after, said(components=[1]))])

    async def get_message(self) -> str:
        for after, text in self._messages:
            await trio.sleep(after)
            return text
        return await super().get_message()


@pytest.mark.parametrize(
    ("after", "waited", "first"),
    [
        (1.0, 1.0, [1]),
        (FIRST_ANSWER + 1, FIRST_ANSWER, None),
        (None, 0.0, None),  # it cannot be reached
    ],
)
async def test_the_first_reading_waits_for_the_cloud(
    autojump_clock: MockClock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    after: float | None,
    waited: float,
    first: list[int] | None,
) -> None:
    @asynccontextmanager
    async def connected(address: CloudAddress) -> AsyncIterator[Socket]:
        if after is None:
            raise CloudUnavailable("connection refused")
        yield Answering(after)

    monkeypatch.setattr("uplink.configuration.connected", connected)
    began = trio.current_time()
    async with Cloud(tmp_path).readings() as readings, aclosing(cast("AsyncGenerator[FileReading]", readings)):
        reading = await anext(readings)
    assert json.loads(reading.data or b"").get("components") == first
    assert trio.current_time() - began == pytest.approx(waited)


@pytest.mark.parametrize(
    "broken",
    [
        b"no JSON",
        {"components": 5},
        {"auth": {"handlers": [{"type": "api-key", "config": {"key": 5}}]}},
    ],
)
async def test_a_machine_says_what_it_can_use(broken: dict[str, Any] | bytes) -> None:
    good = {"components": [{"name": "s", "api": "rdk:component:sensor", "model": "fake"}]}
    async with open_machine(good) as memory:
        await memory.machine.lifecycle.running.wait()
        assert json.loads(memory.source.accepted or b"") == good
        memory.write(broken)
        await trio.testing.wait_all_tasks_blocked()
        assert memory.machine.configured.status.rejected
        assert json.loads(memory.source.accepted or b"") == good
