"""The effects and their order, as tables of cases."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Interface
from typing import Any

import pytest
from msgspec.structs import replace

from netmgr.model.facts import InterfaceAddress, NetworkFacts, NetworkLink
from netmgr.model.network import Personal
from netmgr.model.plan import Effect, InterfacePlan, Join, NetworkPlan, SetUp, TakeOver
from netmgr.planning.difference import difference
from tests.unit.netmgr.planning.support import DEFAULT, HOME, HOTSPOT, RADIO, WIRED, lease, link, route

OWN = "machine-agent"
ADDRESS = IPv4Interface("192.0.2.7/24")
OWNED = frozenset([("eth0", ADDRESS)])
WIRE = InterfacePlan(
    name="eth0", network=WIRED, dhcp=True, addresses=frozenset([ADDRESS]), routes=frozenset([DEFAULT]), ra_metric=100
)
CLIENT = InterfacePlan(name="wlan0", network=HOME, ra_metric=600)
JOINED: dict[str, Any] = {"joining": {"wlan0": "home"}, "clients": {"wlan0": HOME}}


def eth0(**values: Any) -> NetworkLink:
    return link("eth0", **{"manager": OWN, "ra_metric": 100, "addresses": (InterfaceAddress(ADDRESS),), **values})


def wlan0(**values: Any) -> NetworkLink:
    return link("wlan0", **{"manager": OWN, "ra_metric": 600, **values})


def facts(*links: NetworkLink, **values: Any) -> NetworkFacts:
    return NetworkFacts(now=0, links=links, **{"radios": (RADIO,), **values})


def connected(*links: NetworkLink, **values: Any) -> NetworkFacts:
    """Return facts in which the plan WIRE is reached."""
    return facts(
        *links, **{"dhcp": frozenset({"eth0"}), "routes": (route("eth0", 100),), "leases": {"eth0": lease()}, **values}
    )


def words(effects: tuple[Effect, ...]) -> list[str]:
    """Return the names of effects with their interface."""
    return [f"{type(effect).__name__} {effect.interface}".strip() for effect in effects]


@pytest.mark.parametrize(
    ("plans", "observed", "effects"),
    [
        pytest.param([WIRE], connected(eth0()), [], id="reached"),
        pytest.param([WIRE], facts(), [], id="the link was removed"),
        pytest.param(
            [WIRE],
            facts(eth0(up=False, ra_metric=None, addresses=())),
            [
                "SetUp eth0",
                "SetRouterAdvertisements eth0",
                "AddAddress eth0",
                "AddRoute eth0",
                "StartDhcp eth0",
            ],
            id="everything is missing",
        ),
        pytest.param(
            [WIRE],
            connected(eth0(manager="NetworkManager"), dhcp=frozenset()),
            ["TakeOver eth0", "AddAddress eth0", "AddRoute eth0", "StartDhcp eth0"],
            id="taking over removes the addresses",
        ),
        pytest.param(
            [InterfacePlan(name="eth0", network=WIRED, ra_metric=100)],
            connected(eth0(carrier=False)),
            ["DeleteRoute eth0", "StopDhcp eth0", "DeleteAddress eth0"],
            id="the cable was pulled out",
        ),
        pytest.param(
            [replace(WIRE, routes=frozenset([replace(DEFAULT, gateway=IPv4Address("192.0.2.2"))]))],
            connected(eth0()),
            ["AddRoute eth0", "DeleteRoute eth0"],
            id="another gateway",
        ),
        pytest.param(
            [replace(WIRE, addresses=frozenset([IPv4Interface("192.0.2.8/24")]))],
            connected(eth0()),
            ["AddAddress eth0", "DeleteAddress eth0"],
            id="another address",
        ),
        pytest.param(
            [WIRE],
            connected(eth0(addresses=(InterfaceAddress(ADDRESS), InterfaceAddress(IPv4Interface("192.0.2.99/24"))))),
            [],
            id="an address of another program",
        ),
        pytest.param(
            [WIRE],
            connected(eth0(), routes=(route("eth0", 100), route("eth0", 5, protocol=3))),
            [],
            id="a route of another program",
        ),
        pytest.param([], connected(eth0(manager="")), [
            "DeleteRoute eth0", "StopDhcp eth0", "DeleteAddress eth0",
        ], id="left by an earlier run"),
        pytest.param([], connected(eth0()), [
            "DeleteRoute eth0", "StopDhcp eth0", "DeleteAddress eth0", "GiveBack eth0",
        ], id="no longer asked for"),
        pytest.param([CLIENT], facts(wlan0()), ["Join wlan0"], id="join"),
        pytest.param([CLIENT], facts(wlan0(), **JOINED), [], id="joined"),
        pytest.param([], facts(wlan0(), **JOINED), ["Leave wlan0", "GiveBack wlan0"], id="leave"),
        pytest.param(
            [CLIENT],
            facts(wlan0(), joining={"wlan0": "home"}, clients={
                "wlan0": replace(HOME, security=Personal(passphrase="12345678"))
            }),
            ["Join wlan0"],
            id="the password was changed",
        ),
        pytest.param(
            [replace(CLIENT, power_save=False)],
            facts(wlan0(power_save=True), **JOINED),
            ["SetPowerSave wlan0"],
            id="power saving",
        ),
        pytest.param(
            [replace(CLIENT, network=None, ra_metric=None, hotspot=HOTSPOT)],
            facts(wlan0(ra_metric=None), **JOINED),
            ["Leave wlan0", "StartHotspot wlan0"],
            id="from a network to the hotspot",
        ),
        pytest.param([CLIENT], facts(wlan0(), hotspot="wlan0"), [
            "StopHotspot wlan0", "Join wlan0",
        ], id="from the hotspot to a network"),
        pytest.param(
            [replace(CLIENT, hotspot=HOTSPOT)], facts(wlan0(), hotspot="wlan0", hosted=HOTSPOT, **JOINED), [], id="both"
        ),
        pytest.param(
            [replace(CLIENT, hotspot=replace(HOTSPOT, password="another horse"))],
            facts(wlan0(), hotspot="wlan0", hosted=HOTSPOT, **JOINED),
            ["StopHotspot wlan0", "StartHotspot wlan0"],
            id="another password of the hotspot",
        ),
        pytest.param([], facts(hotspot="wlan0"), ["StopHotspot wlan0"], id="the radio was removed"),
        pytest.param(
            [replace(CLIENT, network=None, ra_metric=None)],
            facts(wlan0(up=False, ra_metric=None), radios=(replace(RADIO, blocked="hard"),)),
            [],
            id="a switch turned the radio off",
        ),
        pytest.param(
            [WIRE, CLIENT],
            connected(
                link("eth0"), wlan0(), routes=(route("wlan0", 600),), dhcp=frozenset({"wlan0"}), **JOINED
            ),
            [
                "TakeOver eth0", "SetRouterAdvertisements eth0", "AddAddress eth0", "AddRoute eth0",
                "DeleteRoute wlan0", "StopDhcp wlan0", "StartDhcp eth0",
            ],
            id="the new default route comes before the old one is removed",
        ),
        pytest.param(
            [replace(WIRE, routes=frozenset()), replace(WIRE, name="eth1")],
            facts(eth0(manager="NetworkManager"), link("eth1", manager="NetworkManager", ra_metric=100)),
            [
                "TakeOver eth1", "AddAddress eth1", "AddRoute eth1", "TakeOver eth0", "AddAddress eth0",
                "StartDhcp eth0", "StartDhcp eth1",
            ],
            id="an interface with a new default route is taken over first",
        ),
        pytest.param(
            [WIRE, replace(WIRE, name="eth1", routes=frozenset([replace(DEFAULT, metric=101)]))],
            facts(eth0(manager="NetworkManager"), link("eth1", manager=OWN, ra_metric=100)),
            [
                "AddAddress eth1", "AddRoute eth1", "TakeOver eth0", "AddAddress eth0", "AddRoute eth0",
                "StartDhcp eth0", "StartDhcp eth1",
            ],
            id="an interface is taken over after what the others get",
        ),
    ],
)  # fmt: skip
def test_effects(plans: list[InterfacePlan], observed: NetworkFacts, effects: list[str]) -> None:
    assert words(difference(observed, NetworkPlan(interfaces=tuple(plans)), OWNED)) == effects


def test_the_hotspot_keeps_its_address() -> None:
    observed = facts(
        wlan0(ra_metric=None, addresses=(InterfaceAddress(HOTSPOT.address),)), hotspot="wlan0", hosted=HOTSPOT
    )
    owned = frozenset([("wlan0", HOTSPOT.address)])
    running = NetworkPlan(interfaces=(InterfacePlan(name="wlan0", hotspot=HOTSPOT),))
    assert difference(observed, running, owned) == ()
    stopped = NetworkPlan(interfaces=(InterfacePlan(name="wlan0"),))
    assert words(difference(observed, stopped, owned)) == ["DeleteAddress wlan0", "StopHotspot wlan0"]


@pytest.mark.parametrize(("owned", "effects"), [(OWNED, []), (frozenset(), ["AddAddress eth0"])])
def test_an_address_with_a_lifetime_stays_only_if_netmgr_made_it(owned: Any, effects: list[str]) -> None:
    observed = connected(eth0(addresses=(InterfaceAddress(ADDRESS, dynamic=True),)))
    assert words(difference(observed, NetworkPlan(interfaces=(WIRE,)), owned)) == effects


def test_radios_come_first() -> None:
    observed = facts(wlan0(up=False), radios=(replace(RADIO, blocked="soft"),))
    plan = NetworkPlan(interfaces=(CLIENT,), country="DE", unblock=(0,))
    assert words(difference(observed, plan, OWNED)) == ["Unblock", "SetCountry", "SetUp wlan0", "Join wlan0"]
    reached = replace(observed, radios=(RADIO,), country="DE")
    assert words(difference(reached, plan, OWNED)) == ["SetUp wlan0", "Join wlan0"]


def test_name_servers_are_set_if_their_order_differs() -> None:
    servers: dict[str, tuple[str, ...]] = {"eth0": ("192.0.2.53",), "wlan0": ("198.51.100.53",)}
    plan = NetworkPlan(dns=servers, domains={"eth0": ("example",)})
    assert difference(facts(resolvers=servers, domains={"eth0": ("example",)}), plan, OWNED) == ()
    assert words(difference(facts(resolvers=servers), plan, OWNED)) == ["SetDns"]
    other = dict(reversed(servers.items()))
    assert words(difference(facts(resolvers=other, domains=plan.domains), plan, OWNED)) == ["SetDns"]


def test_contents_of_effects() -> None:
    plan = NetworkPlan(interfaces=(replace(WIRE, mtu=1400), CLIENT))
    effects = difference(facts(link("eth0", manager="dhcpcd", mtu=1500), wlan0()), plan, OWNED)
    assert TakeOver(interface="eth0", manager="dhcpcd") in effects
    assert SetUp(interface="eth0", mtu=1400) in effects
    assert Join(interface="wlan0", network=HOME) in effects
