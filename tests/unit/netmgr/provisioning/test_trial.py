"""Trials of changed networks from the cloud."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from netmgr.model.facts import NetworkFacts, NetworkLink
from netmgr.model.network import Personal, UsableNetwork
from netmgr.provisioning.trial import (
    LIMIT,
    TrialProof,
    TrialRecord,
    TrialResult,
    advance,
    applied,
    offer,
    restarted,
    wake_at,
)
from tests.unit.netmgr.provisioning.device import wifi

HOME, OFFICE = wifi("home"), wifi("office")
CHANGED = wifi("home", security=Personal(passphrase="another one"))
LINKS = (
    NetworkLink(index=2, name="eth0", kind="wired", up=True, carrier=True, mac=""),
    NetworkLink(index=3, name="wlan0", kind="wifi", up=True, carrier=True, mac=""),
)


def facts(now: float = 0.0, **fields: Any) -> NetworkFacts:
    """Return the facts of a device that is online through the network home."""
    defaults: dict[str, Any] = {"links": LINKS, "joining": {"wlan0": "home"}, "cloud": {"wlan0": True}}
    return NetworkFacts(now=now, **{**defaults, **fields})


def on_trial() -> TrialRecord:
    return offer(TrialRecord(networks=(HOME,)), (CHANGED,), facts())


@pytest.mark.parametrize(
    ("networks", "state"),
    [
        pytest.param((HOME, OFFICE), facts(), id="another network is added"),
        pytest.param((CHANGED,), facts(cloud={}), id="the device is offline"),
        pytest.param((CHANGED,), facts(cloud={"eth0": True, "wlan0": False}), id="it is online through a cable"),
        pytest.param((CHANGED,), facts(joining={"wlan0": "office"}), id="it uses another network"),
    ],
)
def test_changes_without_danger_apply_at_once(networks: tuple[Any, ...], state: NetworkFacts) -> None:
    record = offer(TrialRecord(networks=(HOME,)), networks, state)
    assert record == TrialRecord(networks=networks, result=TrialResult.APPLIED)


def test_a_change_of_the_connection_is_on_trial_until_the_cloud_answers_through_it() -> None:
    record = on_trial()
    assert applied(record) == (CHANGED,)
    assert wake_at(record) == LIMIT
    assert advance(record, TrialProof(interface="wlan0", asked=-1.0), facts(5.0)) == record, "asked before the change"
    assert advance(record, TrialProof(interface="eth0", asked=5.0), facts(5.0)) == record, "through another interface"
    confirmed = advance(record, TrialProof(interface="wlan0", asked=5.0), facts(5.0))
    assert confirmed == TrialRecord(networks=(CHANGED,), result=TrialResult.CONFIRMED)


def test_the_former_networks_return_and_the_change_is_not_tried_again() -> None:
    record = advance(on_trial(), None, facts(LIMIT))
    assert (applied(record), record.result) == ((HOME,), TrialResult.REVERTED)
    assert offer(record, (CHANGED,), facts(LIMIT + 1)) == record
    other = offer(record, (wifi("home", security=Personal(passphrase="the right one")),), facts(LIMIT + 2))
    assert other.started == LIMIT + 2


def test_a_power_cut_ends_a_trial_and_the_change_is_tried_once_more_when_online() -> None:
    record = restarted(replace(on_trial(), started=None), 0.0)
    assert applied(record) == (HOME,)
    assert offer(record, (CHANGED,), facts(cloud={})).started is None
    second = offer(record, (CHANGED,), facts(1.0))
    assert (applied(second), second.tries) == ((CHANGED,), 2)
    third = restarted(replace(second, started=None), 0.0)
    assert (applied(third), third.result) == ((HOME,), TrialResult.INTERRUPTED)
    assert applied(offer(third, (CHANGED,), facts(2.0))) == (HOME,)


def test_a_withdrawn_change_ends_its_trial() -> None:
    record = offer(on_trial(), (HOME,), facts(1.0))
    assert applied(record) == (HOME,)
    assert wake_at(record) is None


def test_the_removal_of_the_network_in_use_is_confirmed_by_any_answer() -> None:
    record = offer(TrialRecord(networks=(HOME,)), (), facts())
    assert applied(record) == ()
    assert advance(record, TrialProof(interface="eth0", asked=5.0), facts(5.0)).result is TrialResult.CONFIRMED


def test_no_text_form_has_a_secret() -> None:
    assert "another one" not in repr(on_trial())


def test_a_change_that_a_power_cut_has_kept_from_its_trial_waits_until_the_device_is_online() -> None:
    record = restarted(TrialRecord(networks=(HOME,)), 10.0)
    record = offer(record, (CHANGED,), facts(11.0, cloud={}))
    assert applied(record) == (HOME,)
    assert wake_at(record) == 10.0 + LIMIT
    assert offer(record, (CHANGED,), facts(12.0, cloud={})) == record
    begun = offer(record, (CHANGED,), facts(20.0))
    assert (applied(begun), begun.tries, wake_at(begun)) == ((CHANGED,), 1, 20.0 + LIMIT)


def test_a_waiting_change_applies_if_the_former_networks_do_not_work() -> None:
    record = offer(restarted(TrialRecord(networks=(HOME,)), 10.0), (CHANGED,), facts(11.0, cloud={}))
    assert offer(record, (CHANGED,), facts(10.0 + LIMIT, cloud={})) == TrialRecord(
        networks=(CHANGED,), result=TrialResult.APPLIED
    )


def test_the_first_networks_of_a_device_apply_at_once_after_a_restart() -> None:
    record = offer(restarted(TrialRecord(), 10.0), (HOME,), facts(11.0, cloud={}))
    assert applied(record) == (HOME,)


@pytest.mark.parametrize(
    ("interface", "online", "on_trial"),
    [("", "eth0", True), ("eth0", "eth0", True), ("eth1", "eth0", False), ("", "wlan0", False)],
)
def test_a_change_of_a_cable_is_on_trial_if_the_device_is_online_through_it(
    interface: str, online: str, on_trial: bool
) -> None:
    lan = UsableNetwork(label="lan", kind="wired", source="cloud", interface=interface)
    state = facts(joining={"wlan0": "other"}, cloud={online: True})
    record = offer(TrialRecord(networks=(lan,)), (replace(lan, metric=7),), state)
    assert (record.result is not TrialResult.APPLIED) is on_trial
