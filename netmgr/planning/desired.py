"""Desired state of every interface that netmgr manages. Pure.

An interface without a plan is left to its present manager: no network of the settings is for it, or the one that is to
be used is the manager's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from typing import Final

from msgspec.structs import replace

from netmgr.model.decision import Decision
from netmgr.model.facts import OWN, Facts, Lease, Link
from netmgr.model.network import Network, same_connection
from netmgr.model.plan import InterfacePlan, Plan, PlannedRoute
from netmgr.model.settings import Settings

MTU: Final = range(1280, 9217)
"""MTUs that a DHCP server may set: IPv6 needs 1280, and no Ethernet has more than 9216."""
EVERYTHING: Final = IPv4Network("0.0.0.0/0")


def desired(settings: Settings, facts: Facts, decision: Decision) -> Plan:
    """Return the desired state."""
    if not settings.enabled:
        return Plan()
    networks = {link.name: network for link, network in assignments(settings, facts, decision) if network is not None}
    managed = [link for link in facts.links if is_managed(link, networks.get(link.name), decision)]
    metrics = unique_metrics({link.name: networks[link.name] for link in managed if link.name in networks})
    plans = tuple(_interface(settings, facts, decision, link, networks, metrics) for link in managed)
    connected = {link.name for link in managed if is_connected(facts, link)}
    used = sorted(
        (plan for plan in plans if plan.addresses and plan.name in connected), key=lambda plan: metrics[plan.name]
    )
    return Plan(
        interfaces=plans,
        dns={plan.name: servers for plan in used if (servers := _dns(plan, facts))},
        domains={plan.name: lease.domains for plan in used if (lease := _lease(plan, facts)) and lease.domains},
        country=settings.country,
        unblock=tuple(
            sorted(
                radio.number
                for radio in facts.radios
                if radio.blocked == "soft" and any(link.radio == radio.number for link in managed)
            )
        ),
    )


def assignments(settings: Settings, facts: Facts, decision: Decision) -> Iterator[tuple[Link, Network | None]]:
    """Yield the wired and wifi links, each with the network to use on it.

    A static address is used on one link only: the first with a cable, or else the first.
    """
    by_label = {network.label: network for network in settings.networks}
    static: set[str] = set()
    for link in sorted(facts.links, key=lambda link: (not link.carrier, link.index)):
        if link.kind == "wifi":
            yield link, by_label.get(decision.join.get(link.name, ""))
        elif link.kind == "wired":
            network = next((network for network in wired(settings, link) if network.label not in static), None)
            if network is not None and network.static is not None:
                static.add(network.label)
            yield link, network


def wired(settings: Settings, link: Link) -> list[Network]:
    """Return the networks for a wired link, the preferred one first."""
    networks = [network for network in settings.networks if network.kind == "wired"]
    suitable = [network for network in networks if network.interface in ("", link.name)]
    return sorted(suitable, key=lambda network: (-network.priority, not network.interface, network.label))


def is_managed(link: Link, network: Network | None, decision: Decision) -> bool:
    """Return whether netmgr configures the link: it does already, or something is asked for that its manager lacks."""
    if link.kind == "other":
        return False
    asked = decision.hotspot == link.name or (network is not None and network.source != "adopted")
    if link.manager == OWN:
        return asked or network is not None or link.kind == "wifi"
    return asked or (network is not None and link.manager == "")


def is_connected(facts: Facts, link: Link) -> bool:
    """Return whether the link has a cable, or is associated with an access point."""
    return link.carrier and (link.kind != "wifi" or link.name in facts.associations)


def is_joined(facts: Facts, link: Link, network: Network) -> bool:
    """Return whether the connection of the link, and its lease, are those of the network. A cable has only one."""
    joining = facts.joining.get(link.name)
    return link.kind != "wifi" or (joining is not None and same_connection(joining, network))


def unique_metrics(networks: Mapping[str, Network]) -> dict[str, int]:
    """Return a metric for each interface: the configured one, or the next that no preferred interface has."""
    metrics: dict[str, int] = {}
    for name, network in sorted(networks.items(), key=lambda item: (item[1].route_metric, item[1].kind, item[0])):
        metric = network.route_metric
        while metric in metrics.values():
            metric += 1
        metrics[name] = metric
    return metrics


def _interface(
    settings: Settings,
    facts: Facts,
    decision: Decision,
    link: Link,
    networks: Mapping[str, Network],
    metrics: Mapping[str, int],
) -> InterfacePlan:
    network, hotspot = networks.get(link.name), None
    if decision.hotspot == link.name:
        hotspot = settings.hotspot
        radio = facts.radio_of(link.name)
        if hotspot is not None and (radio is None or not radio.both):
            network = None
    plan = InterfacePlan(
        name=link.name,
        network=network,
        power_save=settings.wifi_power_save if link.kind == "wifi" else None,
        hotspot=hotspot,
    )
    if network is None:
        return plan
    # Addresses and routes stay while the cable is out: connections survive, and the kernel ignores such routes.
    plan = replace(plan, ra_metric=metrics[link.name])
    if network.static is not None:
        address, gateway = network.static.address, network.static.gateway
        return _addressed(plan, address, [(EVERYTHING, gateway)] if gateway else [], metrics[link.name])
    if not is_joined(facts, link, network):
        return plan
    plan, lease = replace(plan, dhcp=is_connected(facts, link)), facts.leases.get(link.name)
    if lease is None:
        return plan
    plan = replace(plan, mtu=lease.mtu if lease.mtu in MTU else None)
    return _addressed(plan, lease.address, leased_routes(lease), metrics[link.name])


def _addressed(
    plan: InterfacePlan, address: IPv4Interface, gateways: Sequence[tuple[IPv4Network, IPv4Address]], metric: int
) -> InterfacePlan:
    planned = frozenset(routes(address.network, gateways, metric))
    return replace(plan, addresses=frozenset({address}), routes=planned)


def leased_routes(lease: Lease) -> list[tuple[IPv4Network, IPv4Address]]:
    """Return destinations and gateways of a lease: the classless routes replace the gateway (RFC 3442)."""
    if lease.routes:
        return list(lease.routes)
    return [(EVERYTHING, lease.gateway)] if lease.gateway is not None else []


def routes(
    own: IPv4Network, gateways: Sequence[tuple[IPv4Network, IPv4Address]], metric: int
) -> Iterator[PlannedRoute]:
    """Yield the route to the network itself, and those through gateways.

    A gateway outside the network gets a route of its own, as some providers need. A gateway of 0.0.0.0 means that the
    destination is on the link (RFC 3442).
    """
    if own.prefixlen < own.max_prefixlen:
        yield PlannedRoute(destination=own, gateway=None, metric=metric)
    for destination, gateway in gateways:
        if gateway.is_unspecified:
            yield PlannedRoute(destination=destination, gateway=None, metric=metric)
            continue
        if gateway not in own:
            yield PlannedRoute(destination=IPv4Network(gateway), gateway=None, metric=metric)
        yield PlannedRoute(destination=destination, gateway=gateway, metric=metric)


def _lease(plan: InterfacePlan, facts: Facts) -> Lease | None:
    return facts.leases.get(plan.name) if plan.dhcp else None


def _dns(plan: InterfacePlan, facts: Facts) -> tuple[str, ...]:
    """Return the name servers of an interface: the configured ones, then those of the lease."""
    lease = _lease(plan, facts)
    servers = [*(plan.network.dns if plan.network is not None else ()), *(lease.dns if lease is not None else ())]
    return tuple(dict.fromkeys(str(server) for server in servers))
