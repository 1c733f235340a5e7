"""Effects that lead from the facts to the plan, in an order that keeps a working connection. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Interface
from typing import TypeAlias

from netmgr.model.facts import OWN, KernelRoute, NetworkFacts, NetworkLink
from netmgr.model.network import UsableNetwork
from netmgr.model.plan import (
    HOTSPOT_ADDRESSES,
    PROTOCOL,
    AddAddress,
    AddRoute,
    DeleteAddress,
    DeleteRoute,
    Effect,
    GiveBack,
    InterfacePlan,
    Join,
    Leave,
    NetworkPlan,
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
from netmgr.planning.choice import radio_of

Owned: TypeAlias = frozenset[tuple[str, IPv4Interface]]
"""Interface and address of every address that netmgr has added."""


def difference(facts: NetworkFacts, plan: NetworkPlan, owned: Owned) -> tuple[Effect, ...]:
    """Return the effects that are still needed, in order. Those for a reached state are left out.

    The order keeps a working default route until another one works: additions on interfaces that netmgr already manages
    come first, then interfaces are taken over, those with a new default route first, and then comes everything that
    removes something. Only routes with PROTOCOL and addresses in `owned` are deleted. If an effect of an interface
    fails, the caller leaves out the later ones of this interface.
    """
    links = {link.name: link for link in facts.links}
    plans = [(links[each.name], each) for each in plan.interfaces if each.name in links]
    kept = [pair for pair in plans if pair[0].manager == OWN]
    taken = sorted((pair for pair in plans if pair[0].manager != OWN), key=lambda pair: not _has_default(pair[1]))
    return (
        *_radios(facts, plan),
        *(effect for link, each in (*kept, *taken) for effect in _additions(link, each, facts, owned)),
        *_dns(facts, plan),
        *_deletions(facts, plan, owned),
        *_wifi(facts, plan, [each for _, each in plans]),
        *(StartDhcp(interface=each.name) for _, each in plans if each.dhcp and each.name not in facts.dhcp),
        *_returns(facts, plan),
    )


def _radios(facts: NetworkFacts, plan: NetworkPlan) -> Iterator[Effect]:
    blocked = {radio.number for radio in facts.radios if radio.blocked == "soft"}
    yield from (Unblock(radio=number) for number in plan.unblock if number in blocked)
    if plan.country and plan.country != facts.country:
        yield SetCountry(country=plan.country)


def _additions(link: NetworkLink, plan: InterfacePlan, facts: NetworkFacts, owned: Owned) -> Iterator[Effect]:
    """Yield what prepares an interface and adds addresses, then routes: first those to gateways outside the subnet."""
    name, fresh = link.name, link.manager != OWN
    if fresh:
        yield TakeOver(interface=name, manager=link.manager)
    radio = radio_of(link, facts)
    wrong_mtu = plan.mtu is not None and plan.mtu != link.mtu
    if (not link.up or wrong_mtu) and not (radio is not None and radio.blocked == "hard"):
        yield SetUp(interface=name, mtu=plan.mtu)
    if plan.ra_metric != link.ra_metric:
        yield SetRouterAdvertisements(interface=name, metric=plan.ra_metric)
    if plan.power_save is not None and plan.power_save != link.power_save:
        yield SetPowerSave(interface=name, on=plan.power_save)
    # TakeOver removes the addresses, and the kernel their routes.
    addresses = frozenset() if fresh else _lasting(link, owned)
    routes = frozenset() if fresh else frozenset(_planned(route) for route in _own_routes(facts, name))
    yield from (AddAddress(interface=name, address=each) for each in sorted(plan.addresses - addresses))
    yield from (AddRoute(interface=name, route=each) for each in sorted(plan.routes - routes, key=_route_order))


def _lasting(link: NetworkLink, owned: Owned) -> frozenset[IPv4Interface]:
    """Return the addresses that stay: the kernel removes those of other programs that have a lifetime."""
    return frozenset(
        each.value
        for each in link.addresses
        if isinstance(each.value, IPv4Interface) and (not each.dynamic or (link.name, each.value) in owned)
    )


def _dns(facts: NetworkFacts, plan: NetworkPlan) -> Iterator[Effect]:
    if list(plan.dns.items()) != list(facts.resolvers.items()) or plan.domains != facts.domains:
        yield SetDns(servers=plan.dns, domains=plan.domains)


def _deletions(facts: NetworkFacts, plan: NetworkPlan, owned: Owned) -> Iterator[Effect]:
    """Yield what removes routes, DHCP clients and addresses, on all interfaces: an earlier run may have left some."""
    plans = {each.name: each for each in plan.interfaces}
    nothing = InterfacePlan(name="")
    hosted = any(each.hotspot is not None for each in plan.interfaces)
    for link in facts.links:
        planned = plans.get(link.name, nothing).routes
        routes = {_planned(route) for route in _own_routes(facts, link.name)}
        yield from (DeleteRoute(interface=link.name, route=each) for each in sorted(routes - planned, key=_last_first))
    for name in sorted(facts.dhcp):
        if not plans.get(name, nothing).dhcp:
            yield StopDhcp(interface=name)
    for link in facts.links:
        addresses = {each.value for each in link.addresses if isinstance(each.value, IPv4Interface)}
        for address in sorted(addresses - plans.get(link.name, nothing).addresses):
            in_use = (
                hosted and address in HOTSPOT_ADDRESSES
            )  # StartHotspot has added it, perhaps to a virtual interface
            if (link.name, address) in owned and not in_use:
                yield DeleteAddress(interface=link.name, address=address)


def _wifi(facts: NetworkFacts, plan: NetworkPlan, plans: list[InterfacePlan]) -> Iterator[Effect]:
    """Yield what frees radios, and then what uses them."""
    networks = {each.name: each.network for each in plan.interfaces if each.network is not None}
    host = next((each for each in plans if each.hotspot is not None), None)
    runs = host is not None and (host.name, host.hotspot) == (facts.hotspot, facts.hosted)
    if facts.hotspot and not runs:
        yield StopHotspot(interface=facts.hotspot)
    yield from (Leave(interface=name) for name in sorted(facts.joining) if name not in networks)
    for each in plans:
        if each.network is not None and each.network.kind == "wifi" and not _is_joining(facts, each.name, each.network):
            yield Join(interface=each.name, network=each.network)
    if host is not None and host.hotspot is not None and not runs:
        yield StartHotspot(interface=host.name, hotspot=host.hotspot)


def _is_joining(facts: NetworkFacts, interface: str, network: UsableNetwork) -> bool:
    """Return whether the client is joining this network, with the same credentials."""
    client = facts.clients.get(interface)
    return (
        client is not None
        and facts.joining.get(interface) == network.label
        and (client.ssid, client.security, client.hidden) == (network.ssid, network.security, network.hidden)
    )


def _returns(facts: NetworkFacts, plan: NetworkPlan) -> Iterator[Effect]:
    managed = {each.name for each in plan.interfaces}
    yield from (
        GiveBack(interface=link.name)
        for link in facts.links
        if link.kind != "other" and link.manager == OWN and link.name not in managed
    )


def _own_routes(facts: NetworkFacts, interface: str) -> Iterator[KernelRoute]:
    return (route for route in facts.routes if route.interface == interface and route.protocol == PROTOCOL)


def _planned(route: KernelRoute) -> PlannedRoute:
    return PlannedRoute(destination=route.destination, gateway=route.gateway, metric=route.metric)


def _has_default(plan: InterfacePlan) -> bool:
    return any(route.destination.prefixlen == 0 for route in plan.routes)


def _route_order(route: PlannedRoute) -> tuple[bool, str]:
    """Return the sort key: routes on the link come before those through gateways."""
    return (route.gateway is not None, str(route.destination))


def _last_first(route: PlannedRoute) -> tuple[bool, str]:
    return (route.gateway is None, str(route.destination))
