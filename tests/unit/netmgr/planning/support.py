"""A simple model of the kernel and the daemons, for tests: what an effect does to the facts."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from typing import Any

from msgspec.structs import replace

from netmgr.model.facts import OWN, AddressLease, InterfaceAddress, KernelRoute, NetworkFacts, NetworkLink, WifiRadio
from netmgr.model.network import Open, StaticAddress, UsableNetwork
from netmgr.model.plan import (
    PROTOCOL,
    AddAddress,
    AddRoute,
    DeleteAddress,
    DeleteRoute,
    Effect,
    GiveBack,
    Join,
    Leave,
    PlannedRoute,
    SetCountry,
    SetDns,
    SetPowerSave,
    SetRouterAdvertisements,
    SetUp,
    StartDhcp,
    StartHotspot,
    StopDhcp,
    StopHotspot,
    TakeOver,
    Unblock,
)
from netmgr.model.settings import Hotspot
from netmgr.planning.difference import Owned

EVERYTHING = IPv4Network("0.0.0.0/0")
HOTSPOT = Hotspot(ssid=b"machine-setup", password="correct horse")
RADIO = WifiRadio(number=0, hotspot=True, both=False)
WIRED = UsableNetwork(label="wire", kind="wired", source="cloud")
HOME = UsableNetwork(label="home", kind="wifi", source="cloud", ssid=b"home", security=Open())
DEFAULT = PlannedRoute(destination=EVERYTHING, gateway=IPv4Address("192.0.2.1"), metric=100)


def link(name: str, **values: Any) -> NetworkLink:
    """Return a link that is up and connected; its kind follows from its name, and wlanN has radio N."""
    kind, number = {"e": "wired", "w": "wifi"}.get(name[0], "other"), int(name[-1])
    base = {"index": 2 + number, "name": name, "kind": kind, "up": True, "carrier": True, "mac": "02:00:00:00:00:01"}
    return NetworkLink(**{**base, "radio": number if kind == "wifi" else None, **values})


def static(address: str, gateway: str | None = None) -> StaticAddress:
    return StaticAddress(address=IPv4Interface(address), gateway=IPv4Address(gateway) if gateway else None)


def lease(address: str = "192.0.2.7/24", gateway: str | None = "192.0.2.1", **values: Any) -> AddressLease:
    """Return a lease; routes as pairs of text."""
    routes = [(IPv4Network(destination), IPv4Address(hop)) for destination, hop in values.pop("routes", ())]
    dns = tuple(map(IPv4Address, values.pop("dns", ())))
    return AddressLease(
        address=IPv4Interface(address),
        gateway=IPv4Address(gateway) if gateway else None,
        routes=tuple(routes),
        dns=dns,
        server=IPv4Address("192.0.2.1"),
        obtained=0,
        renew=1800,
        rebind=3150,
        expire=3600,
        **values,
    )


def route(interface: str, metric: int, *, protocol: int = PROTOCOL, gateway: str = "192.0.2.1") -> KernelRoute:
    """Return a default route."""
    return KernelRoute(
        destination=EVERYTHING, gateway=IPv4Address(gateway), interface=interface, metric=metric, protocol=protocol
    )


def routes(facts: NetworkFacts, *, ours: bool = True) -> set[str]:
    """Return the routes of the facts as text: destination, gateway, interface and metric."""
    return {
        f"{each.destination} via {each.gateway} dev {each.interface} metric {each.metric}"
        for each in facts.routes
        if (each.protocol == PROTOCOL) is ours
    }


def applied(effects: Iterable[Effect], facts: NetworkFacts, owned: Owned) -> tuple[NetworkFacts, Owned]:
    """Return the facts and owned addresses after the effects."""
    for effect in effects:
        facts, owned = apply(effect, facts, owned)
    return facts, owned


def apply(effect: Effect, facts: NetworkFacts, owned: Owned) -> tuple[NetworkFacts, Owned]:
    """Return the facts and owned addresses after an effect."""
    name = effect.interface
    match effect:
        case TakeOver():
            facts = _without_routes(_link(facts, name, manager=OWN, addresses=()), name)
            associations = {key: value for key, value in facts.associations.items() if key != name}
            facts = replace(facts, associations=associations)
            owned = frozenset(each for each in owned if each[0] != name)
        case GiveBack():
            facts = _link(facts, name, manager="NetworkManager")
        case Unblock(radio=number):
            radios = (replace(each, blocked="") if each.number == number else each for each in facts.radios)
            facts = replace(facts, radios=tuple(radios))
        case SetCountry(country=country):
            facts = replace(facts, country=country)
        case SetUp(mtu=mtu):
            facts = _link(facts, name, up=True, **({"mtu": mtu} if mtu else {}))
        case SetPowerSave(on=on):
            facts = _link(facts, name, power_save=on)
        case SetRouterAdvertisements(metric=metric):
            facts = _link(facts, name, ra_metric=metric)
        case Join(network=network):
            associations = {key: value for key, value in facts.associations.items() if key != name}
            facts = replace(
                facts,
                joining={**facts.joining, name: network.label},
                clients={**facts.clients, name: network},
                associations=associations,
            )
        case Leave():
            facts = replace(facts, **{
                field: {key: value for key, value in getattr(facts, field).items() if key != name}
                for field in ("joining", "clients", "associations")
            })  # fmt: skip
        case StartHotspot(hotspot=hotspot):
            address = hotspot.address
            others = tuple(each for each in _addresses(facts, name) if each.value != address)
            running = replace(facts, hotspot=name, hosted=hotspot)
            facts = _link(running, name, addresses=(*others, InterfaceAddress(address)))
            owned |= {(name, address)}
        case StopHotspot():
            facts = replace(facts, hotspot="", hosted=None)
        case StartDhcp():
            facts = replace(facts, dhcp=facts.dhcp | {name})
        case StopDhcp():
            leases = {key: value for key, value in facts.leases.items() if key != name}
            facts = replace(facts, dhcp=facts.dhcp - {name}, leases=leases)
        case AddAddress(address=address):
            others = tuple(each for each in _addresses(facts, name) if each.value != address)
            facts = _link(facts, name, addresses=(*others, InterfaceAddress(address)))
            owned |= {(name, address)}
        case DeleteAddress(address=address):
            facts = _link(
                facts, name, addresses=tuple(each for each in _addresses(facts, name) if each.value != address)
            )
            owned -= {(name, address)}
            if not any(each.value.version == 4 for each in _addresses(facts, name)):
                facts = _without_routes(facts, name)  # as the kernel does
        case AddRoute(route=planned):
            _check_gateway(facts, name, planned)
            key = (planned.destination, planned.metric)
            others_ = (each for each in facts.routes if (each.destination, each.metric) != key)  # on every interface
            added = KernelRoute(
                destination=planned.destination,
                gateway=planned.gateway,
                interface=name,
                metric=planned.metric,
                protocol=PROTOCOL,
            )
            facts = replace(facts, routes=(*others_, added))
        case DeleteRoute(route=planned):
            facts = replace(facts, routes=tuple(
                each for each in facts.routes
                if (each.destination, each.gateway, each.metric, each.interface, each.protocol)
                != (planned.destination, planned.gateway, planned.metric, name, PROTOCOL)
            ))  # fmt: skip
        case SetDns(servers=servers, domains=domains):
            facts = replace(facts, resolvers=servers, domains=domains)
        case _:
            raise AssertionError(effect)
    return facts, owned


def _check_gateway(facts: NetworkFacts, name: str, planned: PlannedRoute) -> None:
    """Fail as the kernel does if the gateway cannot be reached on the interface."""
    subnets = [each.value.network for each in _addresses(facts, name) if each.value.version == 4]
    on_link = [each.destination for each in facts.routes if each.interface == name and each.gateway is None]
    assert planned.gateway is None or any(planned.gateway in subnet for subnet in (*subnets, *on_link)), planned


def _addresses(facts: NetworkFacts, name: str) -> tuple[InterfaceAddress, ...]:
    return next(each.addresses for each in facts.links if each.name == name)


def _link(facts: NetworkFacts, name: str, **values: Any) -> NetworkFacts:
    links = tuple(replace(each, **values) if each.name == name else each for each in facts.links)
    return replace(facts, links=links)


def _without_routes(facts: NetworkFacts, name: str) -> NetworkFacts:
    return replace(facts, routes=tuple(each for each in facts.routes if each.interface != name))
