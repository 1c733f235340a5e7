"""Forwarding of the journal, with a script that prints a file as journalctl does, and a cloud in memory."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

import agent.configure.forwarding as module
import telemetry.logs.outbox_sink
from agent.configure.forwarding import Forwarder
from agent.control.settings import SettingsState
from agent.system.journal import SETTING
from agent.system.programs import SystemPrograms
from support.worker import Worker
from telemetry.logs.entry import Entry
from telemetry.logs.outbox_sink import OutboxSink
from tests.helpers.waiting import until
from tests.unit.agent.supervise.test_supervisor import run_now

LIMIT = 30.0
JOURNALCTL = r"""#!/bin/sh
echo "$*" >> "$STUBS/calls"
line=0
for word; do
  case $word in
    --lines=1) exec tail -n 1 "$STUBS/journal" ;;
    --after-cursor=*)
      if [ -e "$STUBS/unknown" ]; then echo "Failed to seek to cursor: Invalid argument" >&2; exit 1; fi
      line=$(grep -nF "\"${word#*=}\"" "$STUBS/journal" | cut -d: -f1) ;;
    --since=*) line=$(($(cat "$STUBS/since") - 1)) ;;
  esac
done
echo $$ > "$STUBS/pid"
exec tail -n +$((line + 1)) -f "$STUBS/journal"
"""


class Journal:
    """The file that the script prints, and what the cloud has received."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.queue = folder, folder / "queue"
        self.file = folder / "journal"
        self.file.touch()
        self.received: list[Entry] = []
        self.online = True
        self.setting = "all"
        self.settings = SettingsState(folder / "defaults", folder / "stored", run_now)
        self.forwarder: Forwarder
        self._count = 0
        self._news = trio.Event()

    def write(self, message: Any, identifier: str = "sshd", time: float | None = None, **fields: Any) -> None:
        self._count += 1
        moment = int((self._count if time is None else time) * 1e6)
        entry = {"MESSAGE": message, "SYSLOG_IDENTIFIER": identifier, "__CURSOR": f"c{self._count}", "PRIORITY": "4"}
        with self.file.open("a") as file:
            file.write(json.dumps({**entry, "__REALTIME_TIMESTAMP": str(moment), **fields}) + "\n")

    async def upload(self, sink: OutboxSink) -> None:
        while True:
            batch = await sink.next()
            if not self.online:
                await trio.sleep_forever()
            self.received += batch.entries
            sink.acknowledge(batch.last)
            news, self._news = self._news, trio.Event()
            news.set()

    @property
    def messages(self) -> list[str]:
        return [entry.message for entry in self.received]

    def dropped(self) -> int:
        return sum(int(message.split()[0]) for message in self.messages if "dropped" in message)

    async def until(self, condition: Callable[[], bool]) -> None:
        with trio.fail_after(LIMIT):
            while not condition():
                await self._news.wait()

    async def follows(self, calls: int = 1) -> None:
        """Wait until journalctl has been started to follow, `calls` times altogether."""
        await until(lambda: len(self.calls()) >= calls)

    def calls(self) -> list[str]:
        path = self.folder / "calls"
        return [line for line in path.read_text().splitlines() if "--follow" in line] if path.exists() else []

    async def change(self, setting: str) -> None:
        self.setting = setting
        await self.settings.apply({"system_configuration": {"forward_system_logs": setting}})

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        worker = Worker("tests")
        async with worker.opened():
            programs = SystemPrograms(self.folder / "log", worker)
            self.forwarder = Forwarder(self.queue, self.settings, lambda: self.setting, programs, worker, self.upload)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.forwarder.run)
                yield
                nursery.cancel_scope.cancel()


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Journal:
    script = tmp_path / "bin/journalctl"
    script.parent.mkdir()
    script.write_text(JOURNALCTL)
    script.chmod(0o755)
    monkeypatch.setenv("STUBS", str(tmp_path))
    monkeypatch.setenv("PATH", f"{script.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(telemetry.logs.outbox_sink, "SYNC_DELAY", 0.0)
    monkeypatch.setattr(module, "SAVE_DELAY", 0.0)
    monkeypatch.setattr(module, "REPORT_DELAY", 0.05)
    monkeypatch.setattr(module, "FIRST_RETRY", 0.0)
    return Journal(tmp_path)


async def test_entries_are_forwarded_from_now_on(journal: Journal) -> None:
    journal.write("before")
    async with journal.running():
        await journal.follows()
        journal.write("hello", _PID="7")
        journal.write([104, 105, 255], identifier="kernel")
        journal.write(None)
        await journal.until(lambda: len(journal.received) == 3)
    assert journal.messages == ["hello", "hi�", "(message larger than 4096 bytes: see journalctl on the machine)"]
    assert [(entry.logger, entry.level) for entry in journal.received][:2] == [("sshd[7]", 30), ("kernel", 30)]
    assert journal.received[0].time == 2.0


async def test_it_continues_where_it_stopped_without_a_loss_or_a_repetition(journal: Journal) -> None:
    journal.write("before")
    async with journal.running():
        await journal.follows()
        journal.write("first")
        await journal.until(lambda: journal.messages == ["first"])
    for number in range(250):  # at a normal rate, so the limit does not apply
        journal.write(f"while it did not run {number}")
    async with journal.running():
        await journal.until(lambda: len(journal.received) == 251)
    assert journal.messages[1:] == [f"while it did not run {number}" for number in range(250)]


async def test_entries_of_the_time_before_a_kill_are_not_lost(journal: Journal) -> None:
    journal.write("before")
    journal.online = False
    async with journal.running():
        await journal.follows()
        journal.write("first")
        await until(lambda: b"c2" in read(journal.queue / "place"))
        killed = journal.folder / "killed"
        shutil.copytree(journal.queue, killed)  # what a kill at this moment would leave
        journal.write("second")
    shutil.rmtree(journal.queue)
    killed.rename(journal.queue)
    journal.online = True
    async with journal.running():
        await journal.until(lambda: "second" in journal.messages)
    assert journal.messages == ["first", "second"]


async def test_the_place_is_never_ahead_of_the_queue(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(self: OutboxSink) -> None:
        await trio.sleep_forever()

    monkeypatch.setattr(OutboxSink, "synced", never)
    journal.write("before")
    async with journal.running():
        await journal.follows()
        journal.write("first")
        await journal.until(lambda: journal.messages == ["first"])
        assert not (journal.queue / "place").exists()


async def test_own_entries_are_never_forwarded(journal: Journal) -> None:
    journal.write("before")
    async with journal.running():
        await journal.follows()
        for name in ("machine-agent", "machine-server", "machine-launch"):
            journal.write("own", identifier=name)
        journal.write("own", identifier="python3", _SYSTEMD_UNIT="machine-agent.service")
        journal.write("theirs", _SYSTEMD_UNIT="sshd.service")
        await journal.until(lambda: "theirs" in journal.messages)
    assert journal.messages == ["theirs"]


async def test_another_filter_applies_at_once(journal: Journal) -> None:
    journal.write("before")
    async with journal.running():
        await journal.follows()
        journal.write("one")
        await journal.until(lambda: journal.messages == ["one"])
        await journal.change("all,-sshd")
        await trio.testing.wait_all_tasks_blocked()
        journal.write("two")
        journal.write("three", identifier="kernel")
        await journal.until(lambda: "three" in journal.messages)
        assert len(journal.calls()) == 1
    assert journal.messages == ["one", "three"]


async def test_switching_it_off_deletes_queue_and_place(journal: Journal) -> None:
    journal.write("before")
    async with journal.running():
        await journal.follows()
        journal.write("one")
        await journal.until(lambda: journal.messages == ["one"])
        await journal.change("")
        await until(lambda: not journal.queue.exists())
        journal.write("private")
        await journal.change("all")
        await journal.follows(2)
        journal.write("two")
        await journal.until(lambda: "two" in journal.messages)
    assert journal.messages == ["one", "two"]


async def test_a_flood_is_cut_and_counted(journal: Journal) -> None:
    journal.write("before")
    async with journal.running():
        await journal.follows()
        for number in range(500):
            journal.write(f"flood {number}", time=100.0)
        await journal.until(lambda: journal.dropped() == 400)
    assert len([message for message in journal.messages if message.startswith("flood")]) == 100


async def test_a_cursor_that_the_journal_does_not_know_is_replaced_by_the_time(journal: Journal) -> None:
    journal.write("before")
    async with journal.running():
        await journal.follows()
        journal.write("one")
        await journal.until(lambda: journal.messages == ["one"])
    (journal.folder / "unknown").touch()
    (journal.folder / "since").write_text("2")
    journal.write("two")
    async with journal.running():
        await journal.until(lambda: "two" in journal.messages)
        assert journal.forwarder.problems == ()
    assert "--since=@2.000000" in journal.calls()[-1]
    assert journal.messages == ["one", "one", "two"]


@pytest.mark.parametrize("content", [b"", b"{", b'{"cursor": 1}', b"\xff"])
async def test_a_damaged_place_begins_at_the_newest_entry(journal: Journal, content: bytes) -> None:
    journal.queue.mkdir()
    (journal.queue / "place").write_bytes(content)
    journal.write("before")
    async with journal.running():
        await journal.follows()
        journal.write("after")
        await journal.until(lambda: bool(journal.messages))
    assert journal.messages == ["after"]


async def test_damaged_and_huge_entries_are_reported_and_do_not_stop_the_others(journal: Journal) -> None:
    journal.write("before")
    async with journal.running():
        await journal.follows()
        with journal.file.open("ab") as file:
            file.write(b"{\xff\n")
        journal.write("x" * 3_000_000)
        journal.write("after")
        await journal.until(lambda: "after" in journal.messages)
    assert journal.messages == [
        "an entry of the journal is damaged",
        "an entry of the journal is larger than 256 KiB",
        "after",
    ]


async def test_journalctl_is_started_again_after_its_last_entry(journal: Journal) -> None:
    journal.write("before")
    async with journal.running():
        await journal.follows()
        journal.write("one")
        await journal.until(lambda: journal.messages == ["one"])
        os.kill(int((journal.folder / "pid").read_text()), 9)
        await journal.follows(2)
        journal.write("two")
        await journal.until(lambda: "two" in journal.messages)
    assert journal.messages == ["one", "two"]


async def test_a_missing_journalctl_is_a_problem_with_the_setting(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    async with journal.running():
        await until(lambda: journal.forwarder.problems)
        (problem,) = journal.forwarder.problems
    assert problem.path == SETTING
    assert "journalctl" in problem.message


def read(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""
