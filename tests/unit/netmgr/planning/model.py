"""A computer with wired and wifi interfaces, and a model of what effects do to it."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from typing import Any

from msgspec.structs import replace

from netmgr.model.facts import IGNORED, OWN, Address, Association, Facts, Lease, Link, Radio, Route
from netmgr.model.network import Network, Personal, StaticAddress
from netmgr.model.plan import PROTOCOL, Effect, Plan
from netmgr.model.settings import Hotspot
from netmgr.planning.difference import difference

Owned = frozenset[tuple[str, IPv4Interface]]
HOTSPOT = Hotspot(ssid=b"machine-setup-pi", password="ghijklmn")


def link(name: str, **fields: Any) -> Link:
    """Return a link that is up and connected, managed by NetworkManager."""
    wifi = name.startswith("wlan")
    number = int(name[-1])
    defaults: dict[str, Any] = {
        "index": 2 + number + 10 * wifi,
        "kind": "wifi" if wifi else "wired",
        "up": True,
        "carrier": True,
        "mac": f"02:00:00:00:0{int(wifi)}:0{number}",
        "radio": number if wifi else None,
        "manager": "NetworkManager",
    }
    return Link(name=name, **{**defaults, **fields})


def radio(number: int = 0, **fields: Any) -> Radio:
    return Radio(**{"number": number, "hotspot": True, "both": False, **fields})


def wired(label: str = "office", **fields: Any) -> Network:
    return Network(**{"label": label, "kind": "wired", "source": "cloud", **fields})


def wifi(label: str = "home", **fields: Any) -> Network:
    defaults = {"kind": "wifi", "source": "cloud", "ssid": label.encode(), "security": Personal(passphrase="12345678")}
    return Network(label=label, **{**defaults, **fields})


def static(address: str, gateway: str = "") -> StaticAddress:
    return StaticAddress(address=IPv4Interface(address), gateway=IPv4Address(gateway) if gateway else None)


def lease(address: str = "192.168.1.50/24", gateway: str = "192.168.1.1", **fields: Any) -> Lease:
    defaults: dict[str, Any] = {
        "address": IPv4Interface(address),
        "gateway": IPv4Address(gateway) if gateway else None,
        "dns": (IPv4Address(gateway),) if gateway else (),
        "server": IPv4Address(gateway or "192.168.1.1"),
        "obtained": 0.0,
        "renew": 1800.0,
        "rebind": 3150.0,
        "expire": 3600.0,
    }
    return Lease(**{**defaults, **fields})


def association(ssid: str = "home") -> Association:
    return Association(ssid=ssid.encode(), bssid="02:00:00:00:aa:01", frequency=2412)


def applied(facts: Facts, owned: Owned, effect: Effect) -> tuple[Facts, Owned]:
    """Return the facts and the owned addresses after an effect."""
    name, kind = effect.interface, type(effect).__name__
    at = facts.link(name)
    match kind:
        case "TakeOver":
            assert at is not None
            routes = tuple(route for route in facts.routes if route.interface != name or route.protocol == PROTOCOL)
            facts = changed(replace(facts, routes=routes), replace(at, manager=OWN, addresses=()))
        case "GiveBack":
            assert at is not None
            facts = changed(facts, replace(at, manager="NetworkManager"))
        case "Unblock":
            blocked = tuple(
                replace(entry, blocked="") if entry.number == effect.radio else entry for entry in facts.radios
            )
            facts = replace(facts, radios=blocked)
        case "SetCountry":
            facts = replace(facts, country=effect.country)  # type: ignore[attr-defined]
        case "SetUp":
            assert at is not None
            facts = changed(facts, replace(at, up=True, mtu=effect.mtu or at.mtu))  # type: ignore[attr-defined]
        case "SetPowerSave":
            facts = replace(facts, power_save={**facts.power_save, name: effect.on})  # type: ignore[attr-defined]
        case "Join":
            facts = replace(facts, joining={**facts.joining, name: effect.network})  # type: ignore[attr-defined]
        case "Leave":
            facts = replace(facts, joining=without(facts.joining, name), associations=without(facts.associations, name))
        case "StartHotspot":
            facts = replace(facts, hotspot=name)
        case "StopHotspot":
            facts = replace(facts, hotspot="")
        case "StartDhcp":
            facts = replace(facts, dhcp=facts.dhcp | {name})
        case "StopDhcp":
            facts = replace(facts, dhcp=facts.dhcp - {name})
        case "AddAddress":
            assert at is not None
            address: IPv4Interface = effect.address  # type: ignore[attr-defined]
            facts, owned = (
                changed(facts, replace(at, addresses=(*at.addresses, Address(address)))),
                owned | {(name, address)},
            )
        case "DeleteAddress":
            assert at is not None
            address = effect.address  # type: ignore[attr-defined]
            kept = tuple(entry for entry in at.addresses if entry.value != address)
            facts, owned = changed(facts, replace(at, addresses=kept)), owned - {(name, address)}
        case "AddRoute":
            facts = replace(facts, routes=(*facts.routes, route_of(name, effect.route)))  # type: ignore[attr-defined]
        case "DeleteRoute":
            gone = route_of(name, effect.route)  # type: ignore[attr-defined]
            facts = replace(facts, routes=tuple(route for route in facts.routes if route != gone))
        case "SetRouterAdvertisements":
            metric = IGNORED if effect.metric is None else effect.metric  # type: ignore[attr-defined]
            facts = replace(facts, advertisements={**facts.advertisements, name: metric})
        case "SetDns":
            facts = replace(facts, dns=effect.servers, domains=effect.domains)  # type: ignore[attr-defined]
        case _:
            raise AssertionError(f"the model has no {kind}")
    return facts, owned


def all_applied(facts: Facts, owned: Owned, plan: Plan) -> tuple[Facts, Owned]:
    """Return the result of the difference."""
    for effect in difference(facts, plan, owned):
        facts, owned = applied(facts, owned, effect)
    return facts, owned


def changed(facts: Facts, link: Link) -> Facts:
    return replace(facts, links=tuple(link if entry.name == link.name else entry for entry in facts.links))


def without(values: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key != name}


def route_of(interface: str, planned: Any) -> Route:
    return Route(
        destination=planned.destination,
        gateway=planned.gateway,
        interface=interface,
        metric=planned.metric,
        protocol=PROTOCOL,
    )


def kinds(effects: Sequence[Effect]) -> list[str]:
    """Return the kinds and interfaces of effects."""
    return [f"{type(effect).__name__} {effect.interface}".strip() for effect in effects]


def works(facts: Facts, name: str) -> bool:
    """Return whether an interface has an address, a default route, and its gateway on its link."""
    at = facts.link(name)
    if at is None or not at.addresses:
        return False
    routes = [route for route in facts.routes if route.interface == name]
    on_link = [route.destination for route in routes if route.gateway is None]
    return any(
        route.destination == IPv4Network("0.0.0.0/0")
        and route.gateway is not None
        and any(route.gateway in network for network in on_link)
        for route in routes
    )
