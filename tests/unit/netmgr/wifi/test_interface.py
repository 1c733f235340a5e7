"""An interface of wpa_supplicant, whose answers and events are in the test."""

from __future__ import annotations

import pytest
import trio

from netmgr.model.events import Joined, JoinFailed, JoinFailure, Left
from netmgr.model.network import Personal, UsableNetwork
from netmgr.model.settings import Hotspot
from netmgr.wifi.attempt import Report
from netmgr.wifi.interface import JOIN_LIMIT, MAX_ACCESS_POINTS, WifiInterface
from schema.errors import ErrorKind, MachineError

HOME = UsableNetwork(label="home", kind="wifi", source="cloud", ssid=b"home", security=Personal(passphrase="password"))
SETUP = Hotspot(ssid=b"setup", password="password")
CONNECTED = "CTRL-EVENT-CONNECTED - Connection to 02:00:00:00:01:00 completed [id=0 id_str=]"
WRONG_KEY = 'CTRL-EVENT-SSID-TEMP-DISABLED id=0 ssid="home" auth_failures=1 duration=10 reason=WRONG_KEY'


class Fake:
    """Control socket: answers by the first word of a request, and events that a request causes."""

    def __init__(self, interface: WifiInterface) -> None:
        self.requests: list[str] = []
        self.answers = {"ADD_NETWORK": "0", "GET_CAPABILITY": "WPA-PSK SAE"}
        self.events: dict[str, str] = {}
        self._interface = interface

    async def ask(self, request: str) -> str:
        await trio.lowlevel.checkpoint()
        self.requests.append(request)
        word = request.split()[0]
        if event := self.events.get(word):
            self._interface.heard(event)
        return self.answers.get(word, "OK")

    async def do(self, request: str) -> None:
        if (answer := await self.ask(request)) != "OK":
            raise MachineError(answer, kind=ErrorKind.UNAVAILABLE)

    def close(self) -> None:
        pass


class Setup:
    def __init__(self, nursery: trio.Nursery) -> None:
        self.reports: list[Report] = []
        self.interface = WifiInterface("wlan0", self.reports.append, nursery)
        self.control = self.interface.control = Fake(self.interface)


async def test_a_network_is_joined_and_left(nursery: trio.Nursery) -> None:
    setup = Setup(nursery)
    await setup.interface.join(HOME)
    assert setup.control.requests[1:3] == ["REMOVE_NETWORK all", "ADD_NETWORK"]
    assert setup.control.requests[-1] == "SELECT_NETWORK any"
    setup.interface.heard(CONNECTED)
    assert setup.reports == [Joined(interface="wlan0", label="home")]
    await setup.interface.leave()
    setup.interface.heard("CTRL-EVENT-DISCONNECTED bssid=02:00:00:00:01:00 reason=3 locally_generated=1")
    assert len(setup.reports) == 1


async def test_an_attempt_without_an_outcome_ends(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    setup = Setup(nursery)
    begin = trio.current_time()
    await setup.interface.join(HOME)
    await trio.testing.wait_all_tasks_blocked()
    await trio.sleep(JOIN_LIMIT + 1)
    assert setup.reports == [JoinFailed(interface="wlan0", label="home", failure=JoinFailure.TIMEOUT)]
    assert setup.control.requests[-1] == "REMOVE_NETWORK all"
    assert trio.current_time() - begin == JOIN_LIMIT + 1


async def test_a_joined_network_has_no_limit(nursery: trio.Nursery, autojump_clock: trio.testing.MockClock) -> None:
    setup = Setup(nursery)
    await setup.interface.join(HOME)
    setup.interface.heard(CONNECTED)
    await trio.sleep(2 * JOIN_LIMIT)
    assert len(setup.reports) == 1


async def test_a_failed_network_is_removed(nursery: trio.Nursery) -> None:
    setup = Setup(nursery)
    await setup.interface.join(HOME)
    setup.interface.heard(WRONG_KEY)
    assert setup.interface.attempt is None
    await trio.testing.wait_all_tasks_blocked()
    assert setup.control.requests[-1] == "REMOVE_NETWORK all"


async def test_the_end_of_an_attempt_does_not_remove_the_next(nursery: trio.Nursery) -> None:
    setup = Setup(nursery)
    setup.control.events["SELECT_NETWORK"] = WRONG_KEY
    nursery.start_soon(setup.interface.join, HOME)
    nursery.start_soon(setup.interface.join, HOME)  # waits until the first one has begun, before its end is handled
    with trio.fail_after(5):
        while not setup.reports:
            await trio.lowlevel.checkpoint()
    setup.control.events.clear()
    await trio.testing.wait_all_tasks_blocked()
    assert setup.control.requests[-1] == "SELECT_NETWORK any"
    assert setup.interface.attempt is not None


async def test_no_attempt_remains_if_a_join_cannot_begin(nursery: trio.Nursery) -> None:
    setup = Setup(nursery)
    setup.control.answers["SELECT_NETWORK"] = "FAIL"
    with pytest.raises(MachineError):
        await setup.interface.join(HOME)
    assert setup.interface.attempt is None


@pytest.mark.parametrize(("events", "last"), [([], JoinFailed), ([CONNECTED], Left)])
async def test_the_end_of_wpa_supplicant_is_reported(
    nursery: trio.Nursery, events: list[str], last: type[Report]
) -> None:
    setup = Setup(nursery)
    await setup.interface.join(HOME)
    for event in events:
        setup.interface.heard(event)
    setup.interface.lost()
    assert type(setup.reports[-1]) is last
    assert setup.interface.attempt is None


@pytest.mark.parametrize("answer", ["OK", "FAIL-BUSY"])
async def test_a_scan_returns_at_its_end(nursery: trio.Nursery, answer: str) -> None:
    setup = Setup(nursery)
    setup.control.answers |= {"SCAN": answer, "BSS": ""}
    done: list[object] = []

    async def scan() -> None:
        done.append(await setup.interface.scan())

    nursery.start_soon(scan)
    await trio.testing.wait_all_tasks_blocked()
    assert done == []
    setup.interface.heard("CTRL-EVENT-SCAN-RESULTS ")
    await trio.testing.wait_all_tasks_blocked()
    assert done == [()]


async def test_a_failed_scan_is_an_error(nursery: trio.Nursery, autojump_clock: trio.testing.MockClock) -> None:
    setup = Setup(nursery)
    setup.control.events["SCAN"] = "CTRL-EVENT-SCAN-FAILED ret=-16"
    with pytest.raises(MachineError, match="has failed"):
        await setup.interface.scan()
    setup.control.events.clear()
    with pytest.raises(MachineError, match="within 30 s"):
        await setup.interface.scan()
    setup.control.answers["SCAN"] = "FAIL"
    with pytest.raises(MachineError, match="cannot scan now"):
        await setup.interface.scan()


async def test_access_points_are_read_in_pages_up_to_a_limit(nursery: trio.Nursery) -> None:
    setup = Setup(nursery)

    class Pages(Fake):
        async def ask(self, request: str) -> str:
            first = int(request.split("=")[1].split("-")[0])
            entry = "id={}\nbssid=02:00:00:00:00:00\nfreq=2412\nlevel=-50\nage=0\nflags=[ESS]\nssid=x\n"
            return "====\n".join(entry.format(number) for number in range(first, first + 20)) + "####\n"

    setup.interface.control = Pages(setup.interface)
    assert len(await setup.interface.access_points()) == MAX_ACCESS_POINTS


async def test_the_same_page_again_ends_the_list(nursery: trio.Nursery) -> None:
    setup = Setup(nursery)
    setup.control.answers["BSS"] = "id=0\nbssid=02:00:00:00:00:00\nfreq=2412\nlevel=-50\nage=0\nssid=x\n####\n"
    assert len(await setup.interface.access_points()) == 1


async def test_a_hotspot_starts_and_moves(nursery: trio.Nursery) -> None:
    setup = Setup(nursery)
    setup.control.events["SELECT_NETWORK"] = "AP-ENABLED "
    await setup.interface.start_hotspot(SETUP, 2437)
    assert setup.interface.hotspot == SETUP
    setup.control.events["CHAN_SWITCH"] = "AP-CSA-FINISHED freq=2412 dfs=0"
    await setup.interface.move_hotspot(2412)
    assert setup.control.requests[-1].split()[:3] == ["CHAN_SWITCH", "5", "2412"]
    setup.control.answers["CHAN_SWITCH"] = "FAIL"  # the driver cannot announce it
    await setup.interface.move_hotspot(2462)
    assert setup.control.requests[-1] == "SELECT_NETWORK any"
    assert setup.interface.frequency == 2462
    setup.interface.heard("AP-DISABLED ")
    assert setup.interface.hotspot is None


@pytest.mark.parametrize("event", ["AP-DISABLED ", ""])
async def test_a_hotspot_that_does_not_start_is_removed(
    nursery: trio.Nursery, event: str, autojump_clock: trio.testing.MockClock
) -> None:
    setup = Setup(nursery)
    setup.control.events["SELECT_NETWORK"] = event
    with pytest.raises(MachineError, match="did not start"):
        await setup.interface.start_hotspot(SETUP, 2437)
    await trio.testing.wait_all_tasks_blocked()
    assert setup.control.requests[-1] == "REMOVE_NETWORK all"
    assert setup.interface.hotspot is None


STATUS = "bssid=02:00:00:00:01:00\nfreq=2412\nssid=home\nid=0\nmode=station\nwpa_state=COMPLETED\n"


async def test_a_connection_of_an_earlier_agent_is_continued(nursery: trio.Nursery) -> None:
    setup = Setup(nursery)
    setup.control.answers |= {"STATUS": STATUS, "SIGNAL_POLL": "RSSI=-30\nFREQUENCY=2412\n"}
    association = await setup.interface.resume(HOME)
    assert association is not None
    assert association.ssid == b"home"
    assert {request.split()[0] for request in setup.control.requests} == {"STATUS", "SIGNAL_POLL"}
    setup.interface.heard("CTRL-EVENT-DISCONNECTED bssid=02:00:00:00:01:00 reason=3")
    assert setup.reports == [Left(interface="wlan0", label="home", detail="DISCONNECTED reason=3")]


@pytest.mark.parametrize("status", [STATUS.replace("home", "other"), STATUS.replace("COMPLETED", "SCANNING"), ""])
async def test_another_connection_is_not_continued(nursery: trio.Nursery, status: str) -> None:
    setup = Setup(nursery)
    setup.control.answers |= {"STATUS": status, "SIGNAL_POLL": "FAIL"}
    assert await setup.interface.resume(HOME) is None
    assert setup.interface.attempt is None


async def test_a_scan_ends_with_wpa_supplicant(nursery: trio.Nursery) -> None:
    setup = Setup(nursery)

    async def scan() -> None:
        with pytest.raises(MachineError, match="has ended"):
            await setup.interface.scan()

    with trio.fail_after(1):
        async with trio.open_nursery() as scanning:
            scanning.start_soon(scan)
            await trio.testing.wait_all_tasks_blocked()
            setup.interface.lost()


async def test_the_search_for_a_network_goes_on_after_a_scan(nursery: trio.Nursery) -> None:
    setup = Setup(nursery)
    setup.control.events["SCAN"] = "CTRL-EVENT-SCAN-RESULTS"

    async def searches(state: str) -> bool:
        setup.control.requests.clear()
        setup.control.answers["STATUS"] = f"wpa_state={state}\n"
        await setup.interface.scan()
        return "REASSOCIATE" in setup.control.requests

    assert not await searches("INACTIVE")
    await setup.interface.join(HOME)
    assert await searches("SCANNING")
    assert not await searches("4WAY_HANDSHAKE")
    setup.interface.heard(CONNECTED)
    assert not await searches("COMPLETED")
    setup.interface.heard("CTRL-EVENT-DISCONNECTED bssid=02:00:00:00:01:00 reason=2")
    assert await searches("DISCONNECTED")
