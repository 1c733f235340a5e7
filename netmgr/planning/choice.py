"""Which network each interface uses, and which interfaces are left to their present manager. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from netmgr.model.decision import NetworkDecision
from netmgr.model.facts import OWN, NetworkFacts, NetworkLink, WifiRadio
from netmgr.model.network import UsableNetwork
from netmgr.model.settings import NetworkSettings
from netmgr.planning.addresses import EVERYTHING


class Reason(StrEnum):
    """Why an interface is managed by netmgr, or is left alone."""

    USED = "used"  # managed: for the network, the hotspot, or both
    READY = "ready"  # managed without a network: a wifi network of the settings may be joined later
    BLOCKED = "blocked"  # a switch of the computer has turned the radio off
    DISABLED = "disabled"  # the settings turn netmgr off
    NOT_ASKED = "not-asked"  # the settings ask for nothing here
    NOT_CHOSEN = "not-chosen"  # wifi networks of the settings fit, but no decision was made for one
    ADOPTED = "adopted"  # the network is the present manager's own
    DONE = "done"  # the present manager already uses this network
    UNPLUGGED = "unplugged"  # without a cable, there is no need to take it over


class NetworkChoice(msgspec.Struct, frozen=True, kw_only=True):
    """What one interface is used for."""

    reason: Reason
    network: UsableNetwork | None = None
    hotspot: bool = False
    managed: bool = False
    """netmgr configures the interface."""


def choices(settings: NetworkSettings, facts: NetworkFacts, decision: NetworkDecision) -> dict[str, NetworkChoice]:
    """Return the choice for each wired and wifi interface, by name."""
    links = sorted((link for link in facts.links if link.kind != "other"), key=lambda link: link.name)
    if not settings.enabled:
        return {link.name: NetworkChoice(reason=Reason.DISABLED) for link in links}
    wired = best_wired(settings, facts)
    return {
        link.name: _wired(link, wired.get(link.name), settings, facts)
        if link.kind == "wired"
        else _wifi(link, settings, facts, decision)
        for link in links
    }


def fits(network: UsableNetwork, link: NetworkLink, settings: NetworkSettings, facts: NetworkFacts) -> bool:
    """Return whether a network is for this interface. Wifi networks without an interface are for only one."""
    if network.kind != link.kind:
        return False
    if network.interface or link.kind == "wired":
        return network.interface in ("", link.name)
    return link.name == wifi_interface(settings, facts)


def wifi_interface(settings: NetworkSettings, facts: NetworkFacts) -> str:
    """Return the interface for wifi and the hotspot: the one of the settings, or the first; empty if there is none."""
    if settings.wifi_interface:
        return settings.wifi_interface
    wifi = [link for link in facts.links if link.kind == "wifi"]
    return min(wifi, key=lambda link: link.index).name if wifi else ""


def best_wired(settings: NetworkSettings, facts: NetworkFacts) -> Mapping[str, UsableNetwork]:
    """Return the network of each wired interface: highest priority first, those of the settings before adopted ones.

    A static address is used on only one interface, preferably on one with a cable.
    """
    ranked = sorted((network for network in settings.networks if network.kind == "wired"), key=rank)
    chosen: dict[str, UsableNetwork] = {}
    wired = (link for link in facts.links if link.kind == "wired")
    for link in sorted(wired, key=lambda link: (not link.carrier, link.name)):
        for network in ranked:
            taken = network.static is not None and network in chosen.values()
            if fits(network, link, settings, facts) and not taken:
                chosen[link.name] = network
                break
    return chosen


def rank(network: UsableNetwork) -> tuple[int, bool, bool, str]:
    """Return the sort key of networks: the first is used."""
    return (-network.priority, network.source == "adopted", not network.interface, network.label)


def radio_of(link: NetworkLink, facts: NetworkFacts) -> WifiRadio | None:
    """Return the radio of a wifi interface."""
    return next((radio for radio in facts.radios if radio.number == link.radio), None)


def hotspot_possible(link: NetworkLink, settings: NetworkSettings, facts: NetworkFacts) -> bool:
    """Return whether the hotspot can run on the radio of this interface."""
    radio = radio_of(link, facts)
    return settings.hotspot is not None and radio is not None and radio.hotspot


def busy(link: NetworkLink, settings: NetworkSettings, facts: NetworkFacts, decision: NetworkDecision) -> bool:
    """Return whether the hotspot needs the radio of this interface for itself."""
    radio = radio_of(link, facts)
    host = next((each for each in facts.links if each.name == decision.hotspot), None)
    if radio is None or radio.both or host is None or host.radio != radio.number:
        return False
    return hotspot_possible(host, settings, facts)


def connected(link: NetworkLink, network: UsableNetwork, facts: NetworkFacts) -> bool:
    """Return whether netmgr is connected with the network: a cable is plugged in, or it has joined the SSID."""
    if link.kind == "wired":
        return link.carrier
    association = facts.associations.get(link.name)
    joined = association is not None and association.ssid == network.ssid
    return joined and facts.joining.get(link.name) == network.label


def _wired(
    link: NetworkLink, network: UsableNetwork | None, settings: NetworkSettings, facts: NetworkFacts
) -> NetworkChoice:
    if network is None:
        return NetworkChoice(reason=Reason.NOT_ASKED)
    if network.source == "adopted":
        return NetworkChoice(reason=Reason.ADOPTED, network=network)
    if link.manager not in ("", OWN):
        if not link.carrier:
            return NetworkChoice(reason=Reason.UNPLUGGED, network=network)
        if _provides(link, network, facts) or _would_use(link, network, settings):
            return NetworkChoice(reason=Reason.DONE, network=network)
    return NetworkChoice(reason=Reason.USED, network=network, managed=True)


def _wifi(
    link: NetworkLink, settings: NetworkSettings, facts: NetworkFacts, decision: NetworkDecision
) -> NetworkChoice:
    radio = radio_of(link, facts)
    if radio is not None and radio.blocked == "hard":
        return NetworkChoice(reason=Reason.BLOCKED, managed=link.manager == OWN)
    networks = [each for each in settings.networks if fits(each, link, settings, facts)]
    network = next((each for each in networks if each.label == decision.join.get(link.name)), None)
    if busy(link, settings, facts, decision):
        network = None
    if decision.hotspot == link.name and hotspot_possible(link, settings, facts):
        return NetworkChoice(reason=Reason.USED, network=network, hotspot=True, managed=True)
    if network is not None:
        reason = _left(link, network, settings, facts)
        return NetworkChoice(reason=reason, network=network, managed=reason is Reason.USED)
    if all(each.source == "adopted" for each in networks):
        return NetworkChoice(reason=Reason.NOT_ASKED)
    managed = link.manager in ("", OWN)
    return NetworkChoice(reason=Reason.READY if managed else Reason.NOT_CHOSEN, managed=managed)


def _left(link: NetworkLink, network: UsableNetwork, settings: NetworkSettings, facts: NetworkFacts) -> Reason:
    """Return why the present manager may join the network itself; USED if netmgr has to.

    An interface that netmgr has taken over keeps an adopted network, so that the connection is not interrupted.
    """
    if link.manager == OWN:
        return Reason.USED
    if network.source == "adopted":
        return Reason.ADOPTED
    return Reason.DONE if link.manager and _joins(link, network, settings, facts) else Reason.USED


def _joins(link: NetworkLink, network: UsableNetwork, settings: NetworkSettings, facts: NetworkFacts) -> bool:
    """Return whether the present manager is connected with the network, or would connect with it by itself."""
    association = facts.associations.get(link.name)
    if association is not None and association.ssid != network.ssid:
        return False
    return (association is not None and _provides(link, network, facts)) or _would_use(link, network, settings)


def _would_use(link: NetworkLink, network: UsableNetwork, settings: NetworkSettings) -> bool:
    """Return whether a network of the present manager has the same contents."""
    adopted = (each for each in settings.networks if each.source == "adopted" and each.interface in ("", link.name))
    return any(_contents(each) == _contents(network) for each in adopted)


def _contents(network: UsableNetwork) -> tuple[object, ...]:
    return (network.kind, network.ssid, network.security, network.static, network.dns, network.route_metric)


def _provides(link: NetworkLink, network: UsableNetwork, facts: NetworkFacts) -> bool:
    """Return whether the interface has the addresses, name servers and metric that the network asks for."""
    default = [route for route in facts.routes if route.interface == link.name and route.destination == EVERYTHING]
    if network.metric and network.metric not in {route.metric for route in default}:
        return False
    if not {str(server) for server in network.dns} <= set(facts.dns):
        return False
    if network.static is None:
        return any(address.dynamic and address.value.version == 4 for address in link.addresses)
    gateway = network.static.gateway
    return network.static.address in {address.value for address in link.addresses} and (
        gateway is None or gateway in {route.gateway for route in default}
    )
