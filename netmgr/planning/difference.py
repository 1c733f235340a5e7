"""Effects that lead from the facts to a plan. Pure.

Their order keeps a working connection until the next works: what is missing is added before what is left over is
removed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from ipaddress import IPv4Interface

from netmgr.model.facts import IGNORED, OWN, Facts, Link, Route
from netmgr.model.network import same_connection
from netmgr.model.plan import (
    HOTSPOT_ADDRESS,
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
    Plan,
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


def difference(facts: Facts, plan: Plan, owned: Collection[tuple[str, IPv4Interface]]) -> tuple[Effect, ...]:
    """Return the effects that are needed now, in order. `owned` has the addresses that netmgr has added.

    Some effects are needed only when others have had their result: call it again after each change of the facts.
    """
    plans = {planned.name: planned for planned in plan.interfaces}
    links = {link.name: link for link in facts.links}
    left = [link for link in facts.links if link.manager == OWN and link.name not in plans]
    pairs = [(links[name], planned) for name, planned in plans.items() if name in links]
    return (
        *_radios(facts, plan),
        *_ended(facts, plans),
        *(effect for link, planned in pairs for effect in _prepared(facts, link, planned)),
        *(effect for link, planned in pairs for effect in _added(facts, link, planned)),
        *_names(facts, plan),
        *(effect for link, planned in pairs for effect in _removed(facts, link, planned, owned)),
        *(effect for link in left for effect in _given_back(facts, link, owned)),
    )


def _radios(facts: Facts, plan: Plan) -> Iterator[Effect]:
    for radio in facts.radios:
        if radio.number in plan.unblock and radio.blocked == "soft":
            yield Unblock(radio=radio.number)
    if plan.country and plan.country != facts.country:
        yield SetCountry(country=plan.country)


def _ended(facts: Facts, plans: Mapping[str, InterfacePlan]) -> Iterator[Effect]:
    """Yield what must end before something else can use the interfaces."""
    for name in sorted(facts.dhcp):
        if name not in plans or not plans[name].dhcp:
            yield StopDhcp(interface=name)
    if facts.hotspot:
        planned = plans.get(facts.hotspot)
        if planned is None or planned.hotspot is None:
            yield StopHotspot(interface=facts.hotspot)
    for name, network in facts.joining.items():
        planned = plans.get(name)
        if planned is None or planned.network is None or not same_connection(network, planned.network):
            yield Leave(interface=name)


def _prepared(facts: Facts, link: Link, planned: InterfacePlan) -> Iterator[Effect]:
    """Yield what comes before addresses."""
    name, network = link.name, planned.network
    if link.manager not in ("", OWN):
        yield TakeOver(interface=name, manager=link.manager)
    if not link.up or (planned.mtu is not None and planned.mtu != link.mtu):
        yield SetUp(interface=name, mtu=planned.mtu)
    if planned.power_save is not None and facts.power_save.get(name) != planned.power_save:
        yield SetPowerSave(interface=name, on=planned.power_save)
    if planned.hotspot is not None and facts.hotspot != name:
        yield StartHotspot(interface=name, hotspot=planned.hotspot)
    if link.kind == "wifi" and network is not None:
        joining = facts.joining.get(name)
        if joining is None or not same_connection(joining, network):
            yield Join(interface=name, network=network)
    if planned.dhcp and name not in facts.dhcp:
        yield StartDhcp(interface=name)


def _added(facts: Facts, link: Link, planned: InterfacePlan) -> Iterator[Effect]:
    present = {address.value for address in link.addresses}
    for address in sorted(planned.addresses - present):
        yield AddAddress(interface=link.name, address=address)
    metric = IGNORED if planned.ra_metric is None else planned.ra_metric
    if facts.advertisements.get(link.name) != metric:
        yield SetRouterAdvertisements(interface=link.name, metric=planned.ra_metric)
    own = {_as_planned(route) for route in _own_routes(facts, link.name)}
    for route in sorted(planned.routes - own, key=_through_gateway):
        yield AddRoute(interface=link.name, route=route)


def _names(facts: Facts, plan: Plan) -> Iterator[Effect]:
    if (plan.dns, plan.domains) != (facts.dns, facts.domains):
        yield SetDns(servers=plan.dns, domains=plan.domains)


def _removed(
    facts: Facts, link: Link, planned: InterfacePlan, owned: Collection[tuple[str, IPv4Interface]]
) -> Iterator[Effect]:
    """Yield what is left over on a managed interface."""
    for route in sorted(_own_routes(facts, link.name), key=lambda route: _through_gateway(_as_planned(route)))[::-1]:
        if _as_planned(route) not in planned.routes:
            yield DeleteRoute(interface=link.name, route=_as_planned(route))
    yield from _addresses(link, planned.addresses, owned)


def _given_back(facts: Facts, link: Link, owned: Collection[tuple[str, IPv4Interface]]) -> Iterator[Effect]:
    for route in _own_routes(facts, link.name):
        yield DeleteRoute(interface=link.name, route=_as_planned(route))
    yield from _addresses(link, frozenset(), owned)
    yield GiveBack(interface=link.name)


def _addresses(
    link: Link, planned: frozenset[IPv4Interface], owned: Collection[tuple[str, IPv4Interface]]
) -> Iterator[Effect]:
    kept = planned | {HOTSPOT_ADDRESS}  # the hotspot adds and removes its own
    for address in link.addresses:
        value = address.value
        if isinstance(value, IPv4Interface) and (link.name, value) in owned and value not in kept:
            yield DeleteAddress(interface=link.name, address=value)


def _own_routes(facts: Facts, interface: str) -> list[Route]:
    return [
        route
        for route in facts.routes
        if route.interface == interface and route.protocol == PROTOCOL and route.destination.version == 4
    ]


def _as_planned(route: Route) -> PlannedRoute:
    return PlannedRoute(destination=route.destination, gateway=route.gateway, metric=route.metric)


def _through_gateway(route: PlannedRoute) -> tuple[bool, str]:
    """Return a sort key: routes on the link come first, because gateways must be reachable."""
    return route.gateway is not None, str(route.destination)
