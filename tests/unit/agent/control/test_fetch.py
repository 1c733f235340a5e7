"""The calls for settings: intervals, outages, and what is read from an answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import pairwise
from typing import Any, cast

import pytest
import trio
from structlog.testing import capture_logs

from agent.control import fetch as module
from agent.control.fetch import REJECTED, UNREACHABLE, Fetched, Fetcher, Versions
from agent.update.desired import DesiredVersion
from schema.errors import ErrorKind, MachineError
from uplink.contact import Contact
from uplink.dial import CloudAddress


class Cloud:
    """A cloud that answers calls with the values or errors of a list; the last one repeats."""

    url = "https://cloud.example"
    part = "p1"

    def __init__(self, *answers: Mapping[str, Any] | Exception) -> None:
        self.answers = list(answers)
        self.calls: list[tuple[float, Mapping[str, Any]]] = []
        self.contact = Contact()

    @asynccontextmanager
    async def channel(self) -> AsyncIterator[Cloud]:
        yield self

    async def call(self, service: str, name: str, method: str, **arguments: Any) -> Mapping[str, Any]:
        assert (service, name, method) == (module.SERVICE, "", "device_agent_config")
        self.calls.append((trio.current_time(), arguments))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


async def run(
    monkeypatch: pytest.MonkeyPatch, cloud: Cloud, seconds: float
) -> tuple[Fetcher, list[Fetched], Sequence[Mapping[str, Any]]]:
    """Let a fetcher run for some virtual seconds; return it, its answers, and its log."""
    monkeypatch.setattr(module, "ApiClient", lambda channel: channel)
    monkeypatch.setattr("random.uniform", lambda low, high: (low + high) / 2)
    answers: list[Fetched] = []

    async def deliver(fetched: Fetched) -> None:
        answers.append(fetched)

    fetcher = Fetcher(cast(CloudAddress, cloud), {"platform": "linux/x86_64"}, Versions, deliver)
    with capture_logs() as log, trio.move_on_after(seconds):
        await fetcher.run()
    return fetcher, answers, log


@pytest.mark.parametrize(("asked", "seconds"), [(30, 30.0), (1, 5.0), (0, 10.0), (-5, 10.0), (10**6, 3600.0)], ids=str)
async def test_the_interval_of_the_cloud_is_kept_within_bounds(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.abc.Clock, asked: int, seconds: float
) -> None:
    cloud = Cloud({"check_interval": timedelta(seconds=asked)})
    await run(monkeypatch, cloud, 3 * seconds + 1)
    times = [time for time, _ in cloud.calls]
    assert [later - earlier for earlier, later in pairwise(times)] == pytest.approx([seconds] * 3)


async def test_outages_are_logged_once_and_retried_sooner(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.abc.Clock
) -> None:
    away = MachineError("no route to host", kind=ErrorKind.UNAVAILABLE)
    silent, _, _ = await run(monkeypatch, Cloud(away), 5)
    assert not silent.asked.is_set(), "nothing waits for an update check then"
    cloud = Cloud(away, away, away, {"check_interval": timedelta(seconds=20)})
    fetcher, answers, log = await run(monkeypatch, cloud, 10)
    assert [time - cloud.calls[0][0] for time, _ in cloud.calls] == pytest.approx([0, 1, 3, 7])
    assert [entry["event"] for entry in log] == [
        "the cloud cannot be reached; the last settings stay in force",
        "connected to the cloud",
    ]
    assert (len(answers), fetcher.offline, fetcher.asked.is_set()) == (1, "", True)


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (MachineError("bad key", kind=ErrorKind.UNAUTHENTICATED), REJECTED),
        (MachineError("not yours", kind=ErrorKind.PERMISSION), REJECTED),
        (MachineError("deleted", kind=ErrorKind.NOT_FOUND), REJECTED),
        (MachineError("away", kind=ErrorKind.UNAVAILABLE), UNREACHABLE),
        (OSError("network is unreachable"), UNREACHABLE),
    ],
)
async def test_the_reason_for_being_offline_is_a_stable_word(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.abc.Clock, error: Exception, word: str
) -> None:
    fetcher, answers, _ = await run(monkeypatch, Cloud(error), 5)
    assert (fetcher.offline, answers) == (word, [])


async def test_an_answer_that_does_not_come_ends_after_the_limit(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.abc.Clock
) -> None:
    class Silent(Cloud):
        async def call(self, service: str, name: str, method: str, **arguments: Any) -> Mapping[str, Any]:
            await trio.sleep_forever()

    _, _, log = await run(monkeypatch, Silent({}), 20)
    assert log[0]["reason"] == "no answer within 15 s"


async def test_contact_is_announced_only_when_the_cloud_is_reached_again(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.abc.Clock
) -> None:
    away, answer = MachineError("no route", kind=ErrorKind.UNAVAILABLE), {"check_interval": timedelta(seconds=20)}
    cloud = Cloud(answer, answer, answer, away, answer)
    times: list[float] = []
    async with trio.open_nursery() as nursery:

        async def follow() -> None:
            while True:
                await cloud.contact.wait_reached()
                times.append(trio.current_time())

        nursery.start_soon(follow)
        await run(monkeypatch, cloud, 100)
        nursery.cancel_scope.cancel()
    begin = cloud.calls[0][0]
    assert [time - begin for time in times if time > begin] == pytest.approx([61])


async def test_hurry_makes_the_next_call_at_once(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.abc.Clock
) -> None:
    cloud = Cloud({"check_interval": timedelta(hours=1)})
    monkeypatch.setattr(module, "ApiClient", lambda channel: channel)

    async def deliver(fetched: Fetched) -> None:
        if len(cloud.calls) == 1:
            fetcher.hurry()

    fetcher = Fetcher(cast(CloudAddress, cloud), {}, Versions, deliver)
    with trio.move_on_after(5):
        await fetcher.run()
    assert len(cloud.calls) == 2


async def test_an_answer_is_read(monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.abc.Clock) -> None:
    cloud = Cloud(
        {
            "advanced_settings": {"debug": True},
            "system_configuration": None,
            "agent_update_info": {"version": "1.2.0", "url": "https://cloud.example/a", "sha256": b"\x01" * 32},
            "viam_server_update_info": {"version": "1.2.0", "url": ""},
        }
    )
    _, answers, _ = await run(monkeypatch, cloud, 1)
    (fetched,) = answers
    assert fetched.settings == {
        "advanced_settings": {"debug": True},
        "network_configuration": {},
        "additional_networks": {},
        "system_configuration": {},
    }
    assert fetched.agent == DesiredVersion("1.2.0", "https://cloud.example/a", "01" * 32)
    assert fetched.server is None
    assert "cloud.example" not in repr(fetched)


async def test_versions_are_reported(monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.abc.Clock) -> None:
    cloud = Cloud({})
    monkeypatch.setattr(module, "ApiClient", lambda channel: channel)

    async def deliver(fetched: Fetched) -> None:
        pass

    facts = Versions("1.0.0", "1.1.0", "2.0.0", "2.1.0", 60.0, 30.0)
    with trio.move_on_after(1):
        await Fetcher(cast(CloudAddress, cloud), {"platform": "linux/x86_64"}, lambda: facts, deliver).run()
    ((_, arguments),) = cloud.calls
    assert arguments == {
        "id": "p1",
        "host_info": {"platform": "linux/x86_64"},
        "version_info": {
            "agent_running": "1.0.0",
            "agent_installed": "1.1.0",
            "viam_server_running": "2.0.0",
            "viam_server_installed": "2.1.0",
        },
        "agent_uptime": timedelta(seconds=60),
        "viam_server_uptime": timedelta(seconds=30),
    }


async def test_asking_ends_after_a_call_that_began_later(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.abc.Clock
) -> None:
    class Slow(Cloud):
        async def call(self, service: str, name: str, method: str, **arguments: Any) -> Mapping[str, Any]:
            answer = await super().call(service, name, method, **arguments)
            await trio.sleep(2)
            return answer

    cloud = Slow({"check_interval": timedelta(hours=1)})
    monkeypatch.setattr(module, "ApiClient", lambda channel: channel)
    delivered: list[float] = []

    async def deliver(fetched: Fetched) -> None:
        delivered.append(trio.current_time())

    fetcher = Fetcher(cast(CloudAddress, cloud), {}, Versions, deliver)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(fetcher.run)
        await trio.sleep(1)  # the first call is in progress
        await fetcher.ask()
        assert delivered == [pytest.approx(trio.current_time() - 2), trio.current_time()]
        await trio.sleep(100)
        assert len(delivered) == 2
        nursery.cancel_scope.cancel()
