"""Desired state of every interface that netmgr manages. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Interface
from itertools import count

from msgspec.structs import replace

from netmgr.model.decision import NetworkDecision
from netmgr.model.facts import OWN, NetworkFacts, NetworkLink
from netmgr.model.plan import HOTSPOT_ADDRESSES, PROTOCOL, InterfacePlan, NetworkPlan, PlannedRoute
from netmgr.model.settings import Hotspot, NetworkSettings
from netmgr.planning.addresses import Ipv4, ipv4_of
from netmgr.planning.choice import NetworkChoice, choices, connected, radio_of


def desired(settings: NetworkSettings, facts: NetworkFacts, decision: NetworkDecision) -> NetworkPlan:
    """Return the complete state of every interface that netmgr manages, in the order of the route metrics.

    Interfaces without a plan are left to their present managers.
    """
    managed = {name: choice for name, choice in choices(settings, facts, decision).items() if choice.managed}
    links = {link.name: link for link in facts.links}
    metrics = _metrics(managed, facts)
    order = sorted(managed, key=lambda name: (metrics.get(name, 1 << 32), name))
    layers = {name: _ipv4(links[name], managed[name], facts) for name in order}
    return NetworkPlan(
        interfaces=tuple(
            _interface(links[name], managed[name], layers[name], metrics.get(name), settings, facts) for name in order
        ),
        dns={name: layer.dns for name, layer in layers.items() if layer.dns},
        domains={name: layer.domains for name, layer in layers.items() if layer.domains},
        country=settings.country if settings.enabled and facts.radios else "",
        unblock=tuple(sorted({number for name in order if (number := _soft_blocked(links[name], facts)) is not None})),
    )


def _interface(
    link: NetworkLink,
    choice: NetworkChoice,
    layer: Ipv4,
    metric: int | None,
    settings: NetworkSettings,
    facts: NetworkFacts,
) -> InterfacePlan:
    network = choice.network
    routes = () if metric is None else layer.routes
    return InterfacePlan(
        name=link.name,
        network=network,
        dhcp=network is not None and network.static is None and connected(link, network, facts),
        addresses=layer.addresses,
        routes=frozenset(
            PlannedRoute(destination=destination, gateway=gateway, metric=metric or 0)
            for destination, gateway in routes
        ),
        ra_metric=metric,
        mtu=layer.mtu,
        power_save=settings.wifi_power_save if network is not None and link.kind == "wifi" else None,
        hotspot=_hotspot(settings.hotspot, facts) if choice.hotspot and settings.hotspot is not None else None,
    )


def _hotspot(settings: Hotspot, facts: NetworkFacts) -> Hotspot:
    """Return the hotspot with an address whose network no other interface uses; that of a running one if possible."""
    used = {
        address.value.network
        for link in facts.links
        for address in link.addresses
        if isinstance(address.value, IPv4Interface) and address.value not in HOTSPOT_ADDRESSES
    } | {lease.address.network for lease in facts.leases.values()}
    running = (facts.hosted.address,) if facts.hosted is not None else ()
    free = (each for each in (*running, *HOTSPOT_ADDRESSES) if not any(each.network.overlaps(other) for other in used))
    return replace(settings, address=next(free, settings.address))


def _ipv4(link: NetworkLink, choice: NetworkChoice, facts: NetworkFacts) -> Ipv4:
    """Return the configuration; empty without a connection, so that other interfaces carry the traffic."""
    if choice.network is None or not connected(link, choice.network, facts):
        return Ipv4()
    return ipv4_of(choice.network, facts.leases.get(link.name))


def _metrics(managed: Mapping[str, NetworkChoice], facts: NetworkFacts) -> dict[str, int]:
    """Return the metric of each interface with a network: that of the network, or the next one that is not in use.

    All are different, also from those of other programs' routes: the kernel replaces a route with the same destination
    and metric, on whatever interface it is. Names break ties, so that the order is the same after every start.
    """
    taken_over = {link.name for link in facts.links if link.name in managed and link.manager != OWN}
    used = {
        route.metric
        for route in facts.routes
        if route.protocol != PROTOCOL and route.destination.version == 4 and route.interface not in taken_over
    }
    metrics: dict[str, int] = {}
    networks = {name: choice.network for name, choice in managed.items() if choice.network is not None}
    for name in sorted(networks, key=lambda name: (networks[name].route_metric, name)):
        metrics[name] = next(metric for metric in count(networks[name].route_metric) if metric not in used)
        used.add(metrics[name])
    return metrics


def _soft_blocked(link: NetworkLink, facts: NetworkFacts) -> int | None:
    radio = radio_of(link, facts)
    return radio.number if radio is not None and radio.blocked == "soft" else None
