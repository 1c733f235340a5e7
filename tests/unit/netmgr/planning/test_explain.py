"""Explanations for people, as tables of cases."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Any

import pytest
from hypothesis import given
from msgspec.structs import replace

from netmgr.model.decision import NetworkDecision
from netmgr.model.events import JoinFailure
from netmgr.model.facts import AccessPoint, Association, InterfaceAddress, NetworkFacts, NetworkLink
from netmgr.model.network import Enterprise, Open, Personal, UsableNetwork
from netmgr.model.settings import NetworkSettings
from netmgr.planning.explain import explain
from netmgr.planning.explanation import NetworkExplanation, Statement
from tests.unit.netmgr.planning.situations import situations
from tests.unit.netmgr.planning.support import HOME, HOTSPOT, RADIO, WIRED, lease, link, static

NM, SECRET = "NetworkManager", "correct horse battery"
ETH0, WLAN0 = link("eth0"), link("wlan0")
JOIN, AP = NetworkDecision(join={"wlan0": "home"}), NetworkDecision(hotspot="wlan0")
PASSWORD = Statement("The password is wrong.", "enter it again")
CONNECTED: dict[str, Any] = {
    "associations": {"wlan0": Association(ssid=b"home", bssid="", frequency=2412)},
    "joining": {"wlan0": "home"},
}


def explained(
    *networks: UsableNetwork, links: tuple[NetworkLink, ...], decision: NetworkDecision = JOIN, **values: Any
) -> NetworkExplanation:
    failures = values.pop("failures", {})
    settings = {key: values.pop(key) for key in ("enabled", "needs_internet") if key in values}
    facts = NetworkFacts(now=0, links=links, **{"radios": (RADIO,), **values})
    return explain(NetworkSettings(networks=networks, hotspot=HOTSPOT, **settings), facts, decision, failures, "next")


def heard(cipher: Any, ssid: bytes = b"other") -> tuple[AccessPoint, ...]:
    return (AccessPoint(ssid=ssid, bssid="", frequency=2412, signal=-50, cipher=cipher, seen=0),)


@pytest.mark.parametrize(
    ("link", "values", "text"),
    [
        (ETH0, {"enabled": False}, "Network configuration is turned off, so no program configures it."),
        (link("eth0", manager=NM, carrier=False), {}, "No cable is connected, and NetworkManager configures it."),
        (
            link("eth0", manager=NM, addresses=(InterfaceAddress(lease().address, dynamic=True),)),
            {},
            "It already uses 'wire', and NetworkManager configures it.",
        ),
        (link("eth0", carrier=False), {}, "No cable is connected."),
        (ETH0, {}, "It is connected with 'wire', but DHCP has not answered yet."),
        (
            ETH0,
            {"leases": {"eth0": lease("192.0.2.7/0")}},
            "It is connected with 'wire', but DHCP offers 192.0.2.7/0: not usable.",
        ),
        (
            ETH0,
            {"leases": {"eth0": lease()}},
            "It uses 'wire' with the address 192.0.2.7/24, the gateway 192.0.2.1 and the metric 100.",
        ),
        (
            ETH0,
            {"leases": {"eth0": lease()}, "cloud": {"eth0": True}},
            "It uses 'wire' with the address 192.0.2.7/24, the gateway 192.0.2.1 and the metric 100. "
            "The cloud answers through it.",
        ),
        (
            ETH0,
            {"leases": {"eth0": lease()}, "cloud": {"eth0": False}},
            "It uses 'wire' with the address 192.0.2.7/24, the gateway 192.0.2.1 and the metric 100. "
            "The cloud does not answer through this network.",
        ),
        (
            ETH0,
            {"leases": {"eth0": lease()}, "cloud": {"eth0": False}, "unproved": {"eth0": JoinFailure.PORTAL}},
            "It uses 'wire' with the address 192.0.2.7/24, the gateway 192.0.2.1 and the metric 100. "
            "A page of the network answers in place of the cloud.",
        ),
        (
            ETH0,
            {"leases": {"eth0": lease(gateway=None)}},
            "It uses 'wire' with the address 192.0.2.7/24, without a gateway: only the network itself is reached.",
        ),
        (WLAN0, {}, "It joins 'home'."),
        (
            WLAN0,
            {"failures": {"home": PASSWORD}},
            "It joins 'home' again. The last attempt failed: The password is wrong.",
        ),
        (WLAN0, {"decision": AP}, "The hotspot 'machine-setup' runs on it."),
        (
            WLAN0,
            {"decision": replace(JOIN, hotspot="wlan0"), "radios": (replace(RADIO, both=True),)},
            "It joins 'home'. Its radio also runs the hotspot 'machine-setup'.",
        ),
        (WLAN0, {"decision": NetworkDecision()}, "It joins no network at present."),
        (
            link("wlan0", manager=NM),
            {"decision": NetworkDecision()},
            "No network was chosen for it yet, so NetworkManager configures it.",
        ),
        (
            WLAN0,
            {"radios": (replace(RADIO, blocked="hard"),)},
            "A switch of the computer has turned the radio off.",
        ),
    ],
)
def test_state(link: NetworkLink, values: dict[str, Any], text: str) -> None:
    (interface,) = explained(WIRED, HOME, links=(link,), **values).interfaces
    assert interface.state.text == text


def test_state_of_an_interface_that_is_left_to_its_manager() -> None:
    (interface,) = explained(links=(link("eth0", manager=NM),)).interfaces
    assert interface.state.text == "The configuration has no network for it, so NetworkManager configures it."
    (interface,) = explained(replace(WIRED, source="adopted"), links=(link("eth0", manager=NM),)).interfaces
    assert interface.state.text == "The network 'wire' is not from the configuration, so NetworkManager configures it."
    second = link("wlan1", radio=0)
    _, interface = explained(HOME, links=(WLAN0, second), decision=AP).interfaces
    assert interface.state.text == "Its radio runs the hotspot on wlan0."


OTHER = replace(HOME, label="other", ssid=b"other", security=Personal(passphrase=SECRET))


@pytest.mark.parametrize(
    ("network", "values", "text"),
    [
        (replace(OTHER, interface="wlan1"), {}, "It is for the interface wlan1."),
        (OTHER, {"decision": AP}, "The hotspot runs on this radio, which cannot join a network at the same time."),
        (OTHER, {"radios": (replace(RADIO, blocked="hard"),)}, "The radio is turned off."),
        (OTHER, {"enabled": False}, "Network configuration is turned off."),
        (OTHER, {"failures": {"other": PASSWORD}}, "The password is wrong."),
        (OTHER, {}, "No access point with the name 'other' was heard."),
        (
            OTHER,
            {"access_points": heard("open")},
            "Its access point needs no password, but the network is configured with a password.",
        ),
        (
            replace(OTHER, security=Open()),
            {"access_points": heard("wpa2")},
            "Its access point needs a password, but the network is configured with no password.",
        ),
        (
            replace(OTHER, security=Enterprise(method="peap", identity="me", password=SECRET)),
            {"access_points": heard("wep")},
            "Its access point needs WEP, which is not supported, but the network is configured with an account.",
        ),
        (
            OTHER,
            {"access_points": heard("wpa3"), "radios": (replace(RADIO, sae=False),)},
            "Its access point needs WPA3, which the radio of this device does not have.",
        ),
        (OTHER, {"access_points": heard("wpa3")}, "'home' has the same priority, and comes first."),
        (replace(OTHER, hidden=True), {}, "'home' has the same priority, and comes first."),
        (
            replace(OTHER, priority=-5),
            {"access_points": heard("wpa2")},
            "'home' has the higher priority: 0, not -5.",
        ),
        (replace(OTHER, priority=9), {"access_points": heard("wpa2")}, "It has not been tried yet."),
    ],
)
def test_wifi_networks_that_are_not_used(network: UsableNetwork, values: dict[str, Any], text: str) -> None:
    result = explained(HOME, network, links=(WLAN0,), **{**CONNECTED, **values})
    (interface,) = result.interfaces
    assert {each.network: each.why.text for each in interface.not_used}["other"] == text
    assert SECRET not in repr(result)


def test_remedy_for_a_network_that_comes_later_follows_the_rule_of_the_settings() -> None:
    remedies = []
    for needs_internet in (False, True):
        result = explained(
            HOME, OTHER, links=(WLAN0,), access_points=heard("wpa2"), needs_internet=needs_internet, **CONNECTED
        )
        remedies.append(result.interfaces[0].not_used[0].why.remedy)
    assert ["turn_on_hotspot" in remedy for remedy in remedies] == [True, False]


def test_wifi_networks_without_an_interface_are_for_the_first() -> None:
    _, second = explained(HOME, links=(WLAN0, link("wlan1"))).interfaces
    (other,) = second.not_used
    assert other.why.text == "Wifi networks without an interface are used only on wlan0."


def test_wired_networks_that_are_not_used() -> None:
    networks = [
        replace(WIRED, label="static", priority=5, static=static("192.0.2.9/24")),
        WIRED,
        replace(WIRED, label="office", interface="eth1", dns=(IPv4Address("192.0.2.53"),), priority=-1),
        replace(WIRED, label="garage", interface="eth7"),
        HOME,
    ]
    result = explained(*networks, links=(ETH0, link("eth1")))
    assert [each.network for each in result.interfaces] == ["static", "wire"]
    assert [{each.network: each.why.text for each in interface.not_used} for interface in result.interfaces] == [
        {
            "wire": "'static' has the higher priority: 5, not 0.",
            "garage": "It is for the interface eth7.",
            "office": "It is for the interface eth1.",
        },
        {
            "static": "Its static address is used on eth0.",
            "garage": "It is for the interface eth7.",
            "office": "'wire' has the higher priority: 0, not -1.",
        },
    ]
    assert [(each.network, each.why.text) for each in result.not_used] == [
        ("garage", "This computer has no wired interface eth7."),
        ("home", "This computer has no wifi interface."),
    ]
    assert result.next_step == "next"


def test_labels_cannot_control_a_terminal() -> None:
    network = replace(WIRED, label="\x1b[2J\udcff")
    (interface,) = explained(network, links=(ETH0,)).interfaces
    assert interface.state.text.isprintable()


@pytest.mark.slow
@given(situations())
def test_every_network_of_every_interface_is_explained(situation: Any) -> None:
    settings, facts, decision, _ = situation
    result = explain(settings, facts, decision, {}, "")
    assert [each.interface for each in result.interfaces] == sorted(each.name for each in facts.links)
    for interface in result.interfaces:
        labels = {each.network for each in interface.not_used} | {interface.network} - {""}
        assert labels == {each.label for each in settings.networks if each.kind == interface.kind}
        for statement in (interface.state, *(each.why for each in interface.not_used)):
            assert statement.text.endswith(".")
            assert "{" not in statement.text
