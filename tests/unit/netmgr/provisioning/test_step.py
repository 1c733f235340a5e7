"""Provisioning: the rules of the specification, and what a person sees."""

from __future__ import annotations

from itertools import pairwise

import pytest
from msgspec.structs import replace

from netmgr.model.events import JoinFailure
from netmgr.model.network import Personal
from netmgr.provisioning.candidates import is_there
from netmgr.provisioning.states import (
    FIRST_WRONG_PASSWORD,
    HEARD,
    JOIN_LIMIT,
    LEAVE_PAUSE,
    MAX_JOINS,
    MISSED,
    PROOF_LIMIT,
    ROAM_AFTER,
    Entered,
    EnteringFinished,
    Forced,
    Interacted,
    Mode,
    ProvisioningState,
    Tried,
    kept,
    restored,
)
from netmgr.provisioning.targets import HOUR, begun
from netmgr.service.radios import SCAN_ONLINE
from tests.unit.netmgr.provisioning.device import Device, wifi

MINUTE = 60.0


def test_a_new_device_starts_its_hotspot_at_once() -> None:
    device = Device(configured=False)
    assert device.at(0).decision.hotspot == "wlan0"
    assert device.mode is Mode.HOTSPOT


def test_a_new_device_with_a_cable_starts_its_hotspot_too() -> None:
    device = Device(configured=False)
    device.cable = True
    assert device.at(0).decision.hotspot == "wlan0"


def test_a_configured_device_waits_before_its_hotspot() -> None:
    device = Device(wifi(), offline_before_hotspot=120.0)
    assert device.at(0).decision.hotspot == ""
    assert device.at(119).decision.hotspot == ""
    assert device.at(120).decision.hotspot == "wlan0"


def test_a_configured_device_without_networks_does_not_wait() -> None:
    assert Device().at(0).decision.hotspot == "wlan0"


def test_a_device_without_networks_waits_while_its_cable_leads_nowhere() -> None:
    device = Device(offline_before_hotspot=120.0)
    device.cable, device.routed = True, False
    assert device.at(119).decision.hotspot == ""
    assert device.at(120).decision.hotspot == "wlan0"


def test_a_known_network_is_joined() -> None:
    device = Device(wifi())
    device.heard = {"home": -60}
    assert device.at(1).decision.join == {"wlan0": "home"}
    device.joins()
    assert device.mode is Mode.ONLINE
    assert device.at(3600).decision.join == {"wlan0": "home"}


def test_an_outage_starts_the_hotspot_after_its_time_not_at_once() -> None:
    device = Device(wifi(), offline_before_hotspot=120.0)
    device.heard = {"home": -60}
    device.at(0)
    device.joins()
    device.at(7200)
    device.joined, device.heard = {}, {}
    assert device.at(7201).decision.hotspot == ""
    assert device.mode is Mode.SEARCHING
    device.at(7201 + 119)
    assert device.mode is Mode.SEARCHING
    device.at(7201 + 121)
    assert device.mode is Mode.HOTSPOT


def test_the_hotspot_ends_so_that_known_networks_are_tried() -> None:
    device = Device(wifi(), offline_before_hotspot=120.0, retry=600.0)
    device.at(0)
    device.at(120)
    assert device.mode is Mode.HOTSPOT
    device.at(719)
    assert device.mode is Mode.HOTSPOT
    device.at(721)
    assert device.mode is Mode.SEARCHING
    device.at(721 + 120)
    assert device.mode is Mode.HOTSPOT


def test_a_network_that_appears_ends_the_hotspot_and_is_joined() -> None:
    device = Device(wifi())
    device.at(0)
    device.at(150)
    device.heard = {"home": -60}
    assert device.at(200).decision.hotspot == ""
    assert device.at(200).decision.join == {"wlan0": "home"}


def test_a_failing_network_does_not_end_the_hotspot_again_before_the_retry_time() -> None:
    device = Device(wifi(), retry=600.0)
    device.heard = {"home": -60}
    device.at(0)
    device.fails()
    hotspot = [mode for mode in (_mode(device, float(second)) for second in range(1, 700)) if mode is Mode.HOTSPOT]
    assert len(hotspot) > 500


def _mode(device: Device, now: float) -> Mode:
    outcome = device.at(now)
    if outcome.decision.join:
        device.fails()
    return device.mode


@pytest.mark.parametrize("idle", [True, False])
def test_an_active_person_keeps_the_hotspot(idle: bool) -> None:
    device = Device(wifi(), user_idle=300.0)
    device.at(0)
    device.at(150)
    device.at(700 if not idle else 300, Interacted())
    device.at(721 + 60)
    assert (device.mode is Mode.HOTSPOT) == (not idle)


def test_an_entered_network_is_joined_and_the_answer_reaches_the_phone_first() -> None:
    device = Device()
    device.at(0)
    device.settings = replace(device.settings, networks=(wifi("new", source="portal", priority=999),))
    device.at(10, Entered(label="new"))
    device.at(11, EnteringFinished())
    assert device.at(11 + LEAVE_PAUSE - 0.1).decision.hotspot == "wlan0"
    outcome = device.at(11 + LEAVE_PAUSE)
    assert (outcome.decision.hotspot, outcome.decision.join) == ("", {"wlan0": "new"})
    device.joins()
    assert device.mode is Mode.ONLINE
    assert device.state.attempt is not None
    assert device.state.attempt.progress == "joined"


@pytest.mark.parametrize("failure", [JoinFailure.WRONG_PASSWORD, JoinFailure.NOT_FOUND, JoinFailure.REJECTED])
def test_the_hotspot_returns_with_the_reason_of_a_failure(failure: JoinFailure) -> None:
    device = Device()
    device.at(0)
    device.settings = replace(device.settings, networks=(wifi("new", source="portal"),))
    device.at(10, Entered(label="new"))
    device.at(10, EnteringFinished())
    device.at(10 + LEAVE_PAUSE)
    assert device.mode is Mode.TESTING
    assert device.fails(failure).decision.hotspot == "wlan0"
    assert device.state.attempt is not None
    assert (device.state.attempt.progress, device.state.attempt.failure) == ("failed", failure)


def test_an_entry_without_an_end_is_used_when_the_person_has_gone() -> None:
    device = Device(user_idle=300.0)
    device.at(0)
    device.settings = replace(device.settings, networks=(wifi("new", source="portal"),))
    device.at(10, Entered(label="new"))
    assert device.at(309).decision.join == {}
    assert device.at(311).decision.join == {"wlan0": "new"}


@pytest.mark.parametrize(("radios", "both"), [(2, False), (1, True)])
def test_the_hotspot_stays_while_joining_if_the_radios_can(radios: int, both: bool) -> None:
    device = Device(radios=radios, both=both)
    device.at(0)
    device.settings = replace(device.settings, networks=(wifi("new", source="portal"),))
    device.at(10, Entered(label="new"))
    device.at(10, EnteringFinished())
    outcome = device.at(10 + LEAVE_PAUSE)
    assert outcome.decision.join == {"wlan0": "new"}
    assert outcome.decision.hotspot == ("wlan1" if radios == 2 else "wlan0")


def test_a_wrong_password_is_not_repeated_soon_but_a_new_one_is_tried_at_once() -> None:
    device = Device(wifi())
    device.heard = {"home": -60}
    device.at(0)
    device.fails(JoinFailure.WRONG_PASSWORD)
    assert device.at(100).decision.join == {}
    device.settings = replace(device.settings, networks=(wifi(security=Personal(passphrase="another one")),))
    assert device.at(101).decision.join == {"wlan0": "home"}
    device.fails(JoinFailure.WRONG_PASSWORD)
    assert device.at(101 + FIRST_WRONG_PASSWORD - 1).decision.join == {}


def test_only_the_preferred_network_is_tried_while_it_is_there() -> None:
    device = Device(wifi("first", priority=5), wifi("second"))
    device.heard = {"first": -60, "second": -40}
    assert device.at(0).decision.join == {"wlan0": "first"}
    device.fails()
    assert device.at(1).decision.join == {}
    del device.heard["first"]
    assert device.at(1 + HEARD).decision.join == {"wlan0": "first"}, "it was tried again before it counted as away"
    assert device.fails(JoinFailure.NOT_FOUND).decision.join == {"wlan0": "second"}


def test_all_networks_are_tried_in_order_if_the_internet_is_needed() -> None:
    device = Device(wifi("first", priority=5), wifi("second"), needs_internet=True)
    device.heard = {"first": -60, "second": -40}
    assert device.at(0).decision.join == {"wlan0": "first"}
    device.joins()
    assert device.mode is Mode.SEARCHING, "joined, but the cloud does not answer"
    outcome = device.at(PROOF_LIMIT)
    assert device.state.tried["first"].failure is JoinFailure.NO_INTERNET
    assert outcome.decision.join == {"wlan0": "second"}
    device.joins()
    device.cloud = {"wlan0": True}
    device.at(PROOF_LIMIT + 1)
    assert device.mode is Mode.ONLINE


def test_a_network_without_the_cloud_is_given_up_with_the_reason_of_the_proof() -> None:
    device = Device(wifi("first"), needs_internet=True)
    device.heard = {"first": -60}
    device.at(0)
    device.joins()
    device.cloud, device.unproved = {"wlan0": False}, {"wlan0": JoinFailure.PORTAL}
    device.at(PROOF_LIMIT)
    assert device.state.tried["first"].failure is JoinFailure.PORTAL


@pytest.mark.parametrize("others", [True, False])
def test_a_lost_network_is_given_up_soon_if_only_others_are_heard(others: bool) -> None:
    device = Device(wifi("first", priority=5), wifi("second"))
    device.heard = {"first": -60, "second": -40}
    device.at(0)
    device.joins()
    device.at(500)
    device.joined, device.heard = {}, {"second": -40} if others else {}
    device.at(501)
    assert device.at(501 + MISSED).decision.join == {"wlan0": "first"}
    device.at(501 + MISSED + 1)
    assert device.at(501 + MISSED + 1).decision.join == {"wlan0": "second" if others else "first"}


def test_a_hidden_network_is_tried_without_being_heard() -> None:
    device = Device(wifi(hidden=True))
    assert device.at(0).decision.join == {"wlan0": "home"}


def test_an_attempt_ends_after_its_limit() -> None:
    device = Device(wifi())
    device.heard = {"home": -60}
    device.at(0)
    assert device.at(JOIN_LIMIT).decision.join == {}
    assert device.state.tried["home"].failure is JoinFailure.TIMEOUT


@pytest.mark.parametrize(("signal", "changes"), [(-60, True), (-85, False)])
def test_a_preferred_network_is_joined_after_it_was_heard_well_for_a_while(signal: int, changes: bool) -> None:
    device = Device(wifi("garage"), wifi("home", priority=5))
    device.heard = {"garage": -50}
    device.at(0)
    device.joins()
    device.at(100)
    device.heard["home"] = signal
    device.at(100)
    assert device.at(100 + ROAM_AFTER - 1).decision.join == {"wlan0": "garage"}
    assert device.at(100 + ROAM_AFTER).decision.join == {"wlan0": "home" if changes else "garage"}


@pytest.mark.parametrize("pause", [SCAN_ONLINE, SCAN_ONLINE + 20])
def test_a_preferred_network_is_joined_at_the_second_scan_that_hears_it(pause: float) -> None:
    device = Device(wifi("garage"), wifi("home", priority=5))
    device.heard, device.scanned = {"garage": -50}, 0.0
    device.at(0)
    device.joins()
    device.heard["home"], device.scanned = -60, 100.0
    device.at(100)
    assert device.at(99 + pause).decision.join == {"wlan0": "garage"}
    device.scanned = 100 + pause
    assert device.at(100 + pause).decision.join == {"wlan0": "home"}


def test_a_forced_hotspot_lasts_the_retry_time_or_until_a_person_has_finished() -> None:
    device = Device(wifi(), retry=600.0, user_idle=60.0)
    device.heard = {"home": -60}
    device.at(0)
    device.joins()
    assert device.at(100, Forced()).decision.hotspot == "wlan0"
    device.joined = {}
    assert device.at(699).decision.hotspot == "wlan0"
    assert device.at(701).decision.hotspot == ""
    device.at(800, Forced())
    device.at(810, EnteringFinished())
    assert device.at(810 + LEAVE_PAUSE).decision.hotspot == ""


def test_a_cable_ends_the_hotspot_of_a_configured_device() -> None:
    device = Device(wifi())
    device.at(0)
    device.at(150)
    device.cable = True
    assert device.at(151).decision.hotspot == ""
    assert device.mode is Mode.ONLINE


def test_there_is_no_hotspot_without_a_radio_or_setting() -> None:
    device = Device(configured=False, radios=0)
    assert device.at(1000).decision.hotspot == ""
    device = Device(configured=False)
    device.settings = replace(device.settings, hotspot=None)
    assert device.at(1000).decision.hotspot == ""


def test_a_removed_radio_ends_everything_that_used_it() -> None:
    device = Device(wifi())
    device.heard = {"home": -60}
    device.at(0)
    device.joins()
    device.links, device.joined = (), {}
    outcome = device.at(10)
    assert (outcome.decision.join, outcome.decision.hotspot) == ({}, "")
    device.at(500)
    assert device.mode is Mode.SEARCHING


def reboots(device: Device, until: float) -> list[float]:
    times = []
    while device.now < until:
        wake = min(device.outcome.wake if device.outcome else 0.0, until)
        if device._step(wake, None).reboot:
            times.append(device.now)
            device.state = restored(kept(device.state), device.now)
    return times


def test_a_device_that_was_never_online_does_not_reboot() -> None:
    assert reboots(Device(wifi(), reboot_after_offline=600.0), 100_000) == []


def test_reboots_are_ever_rarer() -> None:
    device = Device(wifi(), reboot_after_offline=600.0)
    device.heard = {"home": -60}
    device.at(0)
    device.joins()
    device.at(1000)
    device.joined, device.heard = {}, {}
    device.at(1000)
    times = reboots(device, 1000 + 86_400)
    assert times[0] == pytest.approx(1600, abs=1)
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert gaps == sorted(gaps)
    assert 5 <= len(times) <= 8


def test_an_active_person_delays_a_reboot() -> None:
    device = Device(wifi(), reboot_after_offline=600.0, user_idle=300.0)
    device.heard = {"home": -60}
    device.at(0)
    device.joins()
    device.at(1000)
    device.joined, device.heard = {}, {}
    device.at(1000)
    device.at(1590, Interacted())
    assert reboots(device, 1880) == []
    assert reboots(device, 1900) != []


def test_success_ends_the_row_of_reboots() -> None:
    device = Device(wifi(), reboot_after_offline=600.0)
    device.state = replace(device.state, reboots=5, ever_online=True)
    device.heard = {"home": -60}
    device.at(0)
    device.joins()
    device.at(599)
    assert device.state.reboots == 5
    device.at(601)
    assert device.state.reboots == 0


def test_a_network_that_comes_and_goes_is_not_tried_without_end() -> None:
    """A neighbor can announce a known SSID, refuse the device, and vanish, as often as he likes."""
    device = Device(wifi(), retry=30.0)
    attempts: list[float] = []
    for second in range(2 * 3600):
        device.heard = {"home": -50} if second % 70 < 5 else {}
        outcome = device.at(float(second))
        if outcome.decision.join:
            attempts.append(device.now)
            device.fails(JoinFailure.REJECTED)
    assert len(attempts) > MAX_JOINS
    assert all(last - first > 3599 for first, last in zip(attempts, attempts[MAX_JOINS:], strict=False))


def test_an_attempt_that_a_power_cut_ended_has_failed() -> None:
    device = Device()
    device.at(0)
    device.settings = replace(device.settings, networks=(wifi("new", source="portal"),))
    device.at(10, Entered(label="new"))
    device.at(10, EnteringFinished())
    device.at(10 + LEAVE_PAUSE)
    assert device.state.attempt is not None
    assert device.state.attempt.progress == "joining"
    attempt = restored(kept(device.state), 0.0).attempt
    assert attempt is not None
    assert (attempt.progress, attempt.detail) == ("failed", "the device was restarted meanwhile")


def test_silent_hidden_network() -> None:
    network = wifi(hidden=True)
    state = ProvisioningState(
        tried={network.label: Tried(network=network, failures=1, last=100.0, failure=JoinFailure.NOT_FOUND)}
    )
    assert not is_there(state, network, 100.0 + HEARD - 0.1)
    assert is_there(state, network, 100.0 + HEARD)


def test_a_network_that_another_manager_has_joined_is_the_target() -> None:
    device = Device(wifi(), wifi("office"))
    device.links = tuple(replace(link, manager="NetworkManager") for link in device.links)
    device.joined = {"wlan0": "home"}
    device.at(1)
    assert device.state.targets["wlan0"].label == "home"
    device.joined = {"wlan0": "office"}
    device.at(2)
    assert device.state.targets["wlan0"].label == "office"


def test_attempts_of_the_last_hour_are_counted() -> None:
    state = begun(ProvisioningState(joins=(0.0, 0.5)), "wlan0", "home", HOUR)
    assert state.joins == (0.5, HOUR)
