"""Why a network is not used on an interface, as rules: the first that applies is shown. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from netmgr.model.decision import NetworkDecision
from netmgr.model.facts import AccessPoint, Cipher, NetworkFacts, NetworkLink
from netmgr.model.network import Enterprise, Open, Security, UsableNetwork, ssid_text
from netmgr.model.settings import NetworkSettings
from netmgr.planning.choice import NetworkChoice, Reason, best_wired, busy, fits, radio_of, rank, wifi_interface
from netmgr.planning.explanation import Statement

NEEDS: Final[Mapping[Cipher, str]] = {
    "open": "no password",
    "owe": "no password",
    "wep": "WEP, which is not supported",
    "wpa1": "WPA, which is not supported",
    "wpa2": "a password",
    "wpa3": "a password",
    "wpa2-wpa3": "a password",
    "enterprise": "an account",
}
"""What an access point needs from its clients."""


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """What is explained."""

    settings: NetworkSettings
    facts: NetworkFacts
    decision: NetworkDecision
    failures: Mapping[str, Statement]
    """By label: the last failed attempt of networks that were not joined since."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """Network that is not used on an interface."""

    network: UsableNetwork
    link: NetworkLink
    choice: NetworkChoice
    situation: Situation

    @property
    def heard(self) -> list[AccessPoint]:
        """Access points with the network's SSID."""
        return [each for each in self.situation.facts.access_points if each.ssid == self.network.ssid]


def quoted(label: str) -> str:
    """Return a label in quotes, without characters that a terminal would interpret."""
    return f"'{ssid_text(label.encode(errors='backslashreplace'))}'"


def why_not(case: Case) -> Statement:
    """Return why the network is not used on the interface."""
    rules = _WIRED if case.link.kind == "wired" else _WIFI
    return next(statement for rule in rules if (statement := rule(case)) is not None)


def _other_interface(case: Case) -> Statement | None:
    network = case.network
    if fits(network, case.link, case.situation.settings, case.situation.facts):
        return None
    if network.interface:
        return Statement(f"It is for the interface {network.interface}.")
    used = wifi_interface(case.situation.settings, case.situation.facts)
    return Statement(
        f"Wifi networks without an interface are used only on {used}.",
        f"set the interface of the network to {case.link.name} to use it here",
    )


def _static_elsewhere(case: Case) -> Statement | None:
    if case.network.static is None:
        return None
    used = best_wired(case.situation.settings, case.situation.facts)
    name = next((name for name, network in used.items() if network == case.network and name != case.link.name), None)
    if name is None:
        return None
    return Statement(f"Its static address is used on {name}.", "set the interface of the network to use it elsewhere")


def _turned_off(case: Case) -> Statement | None:
    if case.choice.reason is Reason.DISABLED:
        return Statement("Network configuration is turned off.")
    return Statement("The radio is turned off.") if case.choice.reason is Reason.BLOCKED else None


def _hotspot(case: Case) -> Statement | None:
    if not busy(case.link, case.situation.settings, case.situation.facts, case.situation.decision):
        return None
    return Statement("The hotspot runs on this radio, which cannot join a network at the same time.")


def _failed(case: Case) -> Statement | None:
    return case.situation.failures.get(case.network.label)


def _out_of_range(case: Case) -> Statement | None:
    if case.heard or case.network.hidden:
        return None
    return Statement(
        f"No access point with the name {quoted(ssid_text(case.network.ssid))} was heard.",
        "check its name, that the access point is switched on, and that the device is close enough to it",
    )


def _other_security(case: Case) -> Statement | None:
    ciphers = {each.cipher for each in case.heard}
    if not ciphers or ciphers & _ciphers(case.network.security):
        return None
    needs = sorted({NEEDS[cipher] for cipher in ciphers})
    has = next(NEEDS[cipher] for cipher in ("open", "wpa2", "enterprise") if cipher in _ciphers(case.network.security))
    return Statement(
        f"Its access point needs {' or '.join(needs)}, but the network is configured with {has}.",
        "correct the security of the network, or that of the access point",
    )


def _no_sae(case: Case) -> Statement | None:
    radio = radio_of(case.link, case.situation.facts)
    if radio is None or radio.sae or {each.cipher for each in case.heard} != {"wpa3"}:
        return None
    return Statement(
        "Its access point needs WPA3, which the radio of this device does not have.",
        "let the access point also accept WPA2",
    )


def _comes_later(case: Case) -> Statement | None:
    chosen = case.choice.network
    if chosen is None or rank(chosen) > rank(case.network):
        return None
    if chosen.priority > case.network.priority:
        text = f"{quoted(chosen.label)} has the higher priority: {chosen.priority}, not {case.network.priority}."
    else:
        text = f"{quoted(chosen.label)} has the same priority, and comes first."
    remedy = "give it a higher priority to prefer it"
    if case.network.kind == "wifi" and not case.situation.settings.needs_internet:
        remedy += ", or set turn_on_hotspot_if_wifi_has_no_internet to true to try all networks"
    return Statement(text, remedy)


def _not_tried(case: Case) -> Statement | None:
    return Statement("It has not been tried yet.")


Rule = Callable[[Case], Statement | None]
_WIRED: Final[tuple[Rule, ...]] = (_other_interface, _turned_off, _static_elsewhere, _comes_later, _not_tried)
_WIFI: Final[tuple[Rule, ...]] = (
    _other_interface, _turned_off, _hotspot, _failed, _out_of_range, _other_security, _no_sae, _comes_later, _not_tried,
)  # fmt: skip


def _ciphers(security: Security) -> frozenset[Cipher]:
    """Return the ciphers of access points that a network can be joined with."""
    if isinstance(security, Open):
        return frozenset({"open", "owe"})
    return frozenset({"enterprise"} if isinstance(security, Enterprise) else {"wpa2", "wpa3", "wpa2-wpa3"})
