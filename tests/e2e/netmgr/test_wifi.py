"""Control sockets of wpa_supplicant, and the process, with stand-ins for it."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import trio

from netmgr.model.events import Joined, JoinFailed, JoinFailure, Left
from netmgr.model.network import Personal, UsableNetwork
from netmgr.wifi import control, process
from netmgr.wifi.attempt import Report
from netmgr.wifi.control import Control, connect
from netmgr.wifi.supplicant import Supplicant
from schema.errors import ErrorKind, MachineError

LIMIT = 60.0
PROGRAM = (sys.executable, str(Path(__file__).with_name("fake_wpa_supplicant.py")))


class Daemon:
    """Control socket whose answers the test sends itself, after that of ATTACH."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "wlan0"
        self.client = ""

    async def open(self) -> None:
        self.path.unlink(missing_ok=True)
        self.socket = trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_DGRAM)
        await self.socket.bind(str(self.path))

    async def request(self) -> str:
        data, self.client = await self.socket.recvfrom(8192)
        return bytes(data).decode()

    async def send(self, data: bytes) -> None:
        await self.socket.sendto(data, self.client)


class Scene:
    def __init__(self, daemon: Daemon, attached: Control, events: list[str], nursery: trio.Nursery) -> None:
        self.daemon, self.control, self.events, self.nursery = daemon, attached, events, nursery
        self.answers: list[str] = []

    async def ask(self, request: str) -> None:
        try:
            self.answers.append(await self.control.ask(request))
        except MachineError as error:
            self.answers.append(f"{error.kind.name}: {error}")


@pytest.fixture
async def scene(tmp_path: Path, nursery: trio.Nursery) -> AsyncIterator[Scene]:
    daemon = Daemon(tmp_path)
    await daemon.open()
    events: list[str] = []

    async def accept() -> None:
        assert await daemon.request() == "ATTACH"
        await daemon.send(b"OK\n")

    nursery.start_soon(accept)
    attached = await connect(daemon.path, events.append, nursery)
    try:
        yield Scene(daemon, attached, events, nursery)
    finally:
        attached.close()
        daemon.socket.close()
        assert os.listdir(tmp_path) == [daemon.path.name]


async def until(condition: Callable[[], object]) -> None:
    with trio.fail_after(LIMIT):
        while not condition():  # noqa: ASYNC110 - the lists of the test have no event
            await trio.sleep(0.01)


async def test_events_and_answers_are_separated(scene: Scene) -> None:
    scene.nursery.start_soon(scene.ask, "PING")
    assert await scene.daemon.request() == "PING"
    for data in (b"<3>CTRL-EVENT-A", b"IFNAME=wlan0 <4>B \xff", b"<PONG>\n", b"unexpected"):
        await scene.daemon.send(data)
    await scene.daemon.send(b"<2>last")
    await until(lambda: "last" in scene.events)
    assert scene.events == ["CTRL-EVENT-A", "B \\xff", "last"]
    assert scene.answers == ["<PONG>"]


async def test_a_late_answer_is_not_that_of_the_next_request(scene: Scene) -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        await scene.control.ask("never sent")
    with trio.move_on_after(0.05):
        await scene.control.ask("cancelled")
    assert await scene.daemon.request() == "cancelled"
    scene.nursery.start_soon(scene.ask, "next")
    assert await scene.daemon.request() == "next"
    await scene.daemon.send(b"answer of cancelled")
    await scene.daemon.send(b"answer of next")
    await until(lambda: scene.answers)
    assert scene.answers == ["answer of next"]


async def test_only_the_socket_of_the_daemon_is_heard(scene: Scene, tmp_path: Path) -> None:
    with trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_DGRAM) as stranger:
        await stranger.sendto(b"<3>forged", scene.daemon.client)
    await scene.daemon.send(b"<3>real")
    await until(lambda: scene.events)
    assert scene.events == ["real"]


async def test_the_daemon_may_replace_its_socket(scene: Scene) -> None:
    scene.daemon.socket.close()
    await scene.daemon.open()
    scene.nursery.start_soon(scene.ask, "PING")
    assert await scene.daemon.request() == "PING"
    await scene.daemon.send(b"<3>event")
    await scene.daemon.send(b"PONG")
    await until(lambda: scene.answers)
    assert (scene.answers, scene.events) == (["PONG"], ["event"])


async def test_errors_do_not_show_secrets(scene: Scene) -> None:
    async def fail() -> None:
        await scene.daemon.request()
        await scene.daemon.send(b"FAIL\n")

    for request in ('SET_NETWORK 0 psk "secret words"', "SET blob private-key 736563726574"):
        scene.nursery.start_soon(fail)
        with pytest.raises(MachineError) as caught:
            await scene.control.do(request)
        assert "FAIL" in str(caught.value)
        assert "secret" not in str(caught.value)
        assert "7365" not in str(caught.value)


async def test_waiting_requests_are_bounded_and_end_with_the_connection(scene: Scene) -> None:
    for _ in range(control.MAX_WAITING):
        scene.nursery.start_soon(scene.ask, "x")
    for _ in range(control.MAX_WAITING):
        await scene.daemon.request()
    with pytest.raises(MachineError, match="does not answer"):
        await scene.control.ask("one more")
    with pytest.raises(MachineError, match="bytes"):
        await scene.control.ask("x" * (control.MAX_REQUEST + 1))
    scene.control.close()
    await until(lambda: len(scene.answers) == control.MAX_WAITING)
    assert all(answer.startswith("UNAVAILABLE") for answer in scene.answers)


async def test_a_silent_daemon_ends_the_nursery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "LIMIT", 0.05)
    daemon = Daemon(tmp_path)
    await daemon.open()
    with pytest.raises(BaseExceptionGroup) as caught:
        async with trio.open_nursery() as nursery:
            await connect(daemon.path, lambda _: None, nursery)
    errors = caught.value.exceptions
    assert all(isinstance(error, MachineError) and error.kind is ErrorKind.TIMEOUT for error in errors)
    daemon.socket.close()


# ---- the process


def network(password: str) -> UsableNetwork:
    return UsableNetwork(
        label="home", kind="wifi", source="cloud", ssid=b"home", security=Personal(passphrase=password)
    )


class Radio:
    def __init__(self, folder: Path, program: tuple[str, ...] = PROGRAM) -> None:
        self.reports: list[Report] = []
        self.runs: list[MachineError | None] = []
        self.supplicant = Supplicant(0, self.reports.append, self.runs.append, folder=folder, program=program)


async def test_networks_are_joined_by_the_process(tmp_path: Path, nursery: trio.Nursery) -> None:
    radio = Radio(tmp_path)
    nursery.start_soon(radio.supplicant.run)
    await radio.supplicant.join("wlan0", network("wrong password"))
    await until(lambda: radio.reports)
    await radio.supplicant.join("wlan0", network("right password"))
    await until(lambda: len(radio.reports) == 2)
    failed, joined = radio.reports
    assert isinstance(failed, JoinFailed)
    assert failed.failure is JoinFailure.WRONG_PASSWORD
    assert isinstance(joined, Joined)
    assert radio.supplicant.joining == {"wlan0": "home"}
    assert (tmp_path / "radio0").stat().st_mode & 0o777 == 0o700
    nursery.cancel_scope.cancel()


async def test_a_cancelled_join_leaves_the_interface_usable(tmp_path: Path, nursery: trio.Nursery) -> None:
    radio = Radio(tmp_path)
    nursery.start_soon(radio.supplicant.run)
    await until(lambda: radio.runs)
    async with trio.open_nursery() as joining:
        joining.start_soon(radio.supplicant.join, "wlan0", network("right password"))
        while not os.path.exists(tmp_path / "radio0" / "wlan0"):  # noqa: ASYNC240 - cancel before the answer
            await trio.lowlevel.checkpoint()
        joining.cancel_scope.cancel()
    await radio.supplicant.join("wlan0", network("right password"))
    await until(lambda: radio.reports)
    nursery.cancel_scope.cancel()


@pytest.mark.parametrize("request_", ["DIE", "HANG"])
async def test_the_process_is_started_again(
    tmp_path: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch, request_: str
) -> None:
    monkeypatch.setattr(control, "LIMIT", 1.0)
    radio = Radio(tmp_path)
    nursery.start_soon(radio.supplicant.run)
    await radio.supplicant.join("wlan0", network("right password"))
    await until(lambda: radio.reports)
    interface = await radio.supplicant._interface("wlan0")
    with pytest.raises(MachineError):
        await interface.control.ask(request_)
    await until(lambda: len(radio.runs) == 3)
    assert (radio.runs[0], radio.runs[2]) == (None, None)
    assert ("ended by DIE" if request_ == "DIE" else "does not answer") in str(radio.runs[1])
    assert isinstance(radio.reports[-1], Left)
    assert radio.supplicant.joining == {}
    await radio.supplicant.join("wlan0", network("right password"))
    await until(lambda: isinstance(radio.reports[-1], Joined))
    nursery.cancel_scope.cancel()


async def test_a_missing_program_says_how_to_install_it(tmp_path: Path, nursery: trio.Nursery) -> None:
    radio = Radio(tmp_path, ("no-such-program",))
    nursery.start_soon(radio.supplicant.run)
    await until(lambda: radio.runs)
    with pytest.raises(MachineError, match="apt-get install wpasupplicant"):
        await radio.supplicant.join("wlan0", network("right password"))
    nursery.cancel_scope.cancel()


async def test_a_program_that_ends_at_once_gives_its_reason(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="no wifi here"):
        async with process.running(tmp_path, ("sh", "-c", "echo no wifi here; exit 1")):
            pass


async def test_a_process_of_a_killed_agent_is_ended(tmp_path: Path) -> None:
    async with process.running(tmp_path, PROGRAM) as earlier, process.running(tmp_path, PROGRAM):
        with trio.fail_after(LIMIT), pytest.raises(MachineError, match="ended by TERMINATE"):
            await earlier.wait()
