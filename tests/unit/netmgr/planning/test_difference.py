"""Effects: they reach the plan, in an order that keeps a working connection, and touch nothing of other programs."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from netmgr.model.decision import Decision
from netmgr.model.facts import IGNORED, OWN, Address, Facts, Route
from netmgr.model.network import Personal
from netmgr.model.plan import PROTOCOL, InterfacePlan, Plan
from netmgr.model.settings import Settings
from netmgr.planning.desired import desired
from netmgr.planning.difference import difference
from tests.unit.netmgr.planning.model import (
    HOTSPOT,
    Owned,
    all_applied,
    applied,
    association,
    kinds,
    lease,
    link,
    radio,
    static,
    wifi,
    wired,
    works,
)

ETH0, ETH1, WLAN0 = link("eth0"), link("eth1"), link("wlan0")
OWN_ETH0, OWN_WLAN0 = replace(ETH0, manager=OWN), replace(WLAN0, manager=OWN)
JOIN = Decision(join={"wlan0": "home"})
NONE: Owned = frozenset()


def test_a_wired_network_is_taken_over_and_asked_for_a_lease() -> None:
    facts = Facts(now=0, links=(replace(ETH0, up=False),))
    plan = desired(Settings(networks=(wired(),)), facts, Decision())
    assert kinds(difference(facts, plan, NONE)) == [
        "TakeOver eth0", "SetUp eth0", "StartDhcp eth0", "SetRouterAdvertisements eth0",
    ]  # fmt: skip


def test_a_lease_becomes_an_address_then_a_route_then_name_servers() -> None:
    facts = Facts(
        now=0,
        links=(OWN_ETH0,),
        dhcp=frozenset({"eth0"}),
        advertisements={"eth0": 100},
        leases={"eth0": lease("100.64.3.7/32", "100.64.0.1")},
    )
    effects = difference(facts, desired(Settings(networks=(wired(),)), facts, Decision()), NONE)
    assert kinds(effects) == ["AddAddress eth0", "AddRoute eth0", "AddRoute eth0", "SetDns"]
    assert [str(effect.route.destination) for effect in effects[1:3]] == ["100.64.0.1/32", "0.0.0.0/0"]  # type: ignore[attr-defined]


def test_a_wifi_network_is_left_before_the_next_is_joined() -> None:
    facts = Facts(
        now=0,
        links=(OWN_WLAN0,),
        joining={"wlan0": wifi("office")},
        dhcp=frozenset({"wlan0"}),
        advertisements={"wlan0": 600},
        associations={"wlan0": association()},
    )
    plan = desired(Settings(networks=(wifi(),)), facts, JOIN)
    assert kinds(difference(facts, plan, NONE)) == ["StopDhcp wlan0", "Leave wlan0", "Join wlan0"]


@pytest.mark.parametrize(
    ("fields", "rejoined"),
    [
        ({"priority": 7}, False),
        ({"metric": 50}, False),
        ({"security": Personal(passphrase="another one")}, True),
        ({"hidden": True}, True),
    ],
)
def test_only_a_change_of_the_connection_joins_again(fields: dict[str, Any], rejoined: bool) -> None:
    facts = Facts(now=0, links=(OWN_WLAN0,), joining={"wlan0": wifi()})
    plan = desired(Settings(networks=(wifi(**fields),)), facts, JOIN)
    assert ("Join wlan0" in kinds(difference(facts, plan, NONE))) == rejoined


def test_the_hotspot_starts_and_ends() -> None:
    settings = Settings(networks=(wifi(),), hotspot=HOTSPOT)
    facts = Facts(now=0, links=(WLAN0,), radios=(radio(),))
    plan = desired(settings, facts, Decision(hotspot="wlan0"))
    assert kinds(difference(facts, plan, NONE))[:2] == ["TakeOver wlan0", "StartHotspot wlan0"]
    running = replace(facts, links=(OWN_WLAN0,), hotspot="wlan0", advertisements={"wlan0": IGNORED})
    assert difference(running, plan, NONE) == ()
    effects = kinds(difference(running, desired(settings, running, JOIN), NONE))
    assert effects[:2] == ["StopHotspot wlan0", "Join wlan0"]


def test_routes_and_addresses_of_others_stay() -> None:
    foreign = Route(
        destination=IPv4Network("0.0.0.0/0"), gateway=IPv4Address("10.0.0.1"), interface="eth0", metric=20, protocol=4
    )
    own = replace(foreign, protocol=PROTOCOL, metric=100)
    addresses = (Address(IPv4Interface("10.0.0.2/24")), Address(IPv4Interface("10.0.0.3/24")))
    facts = Facts(now=0, links=(replace(OWN_ETH0, addresses=addresses),), routes=(foreign, own))
    effects = difference(facts, Plan(), frozenset({("eth0", IPv4Interface("10.0.0.3/24"))}))
    assert kinds(effects) == ["DeleteRoute eth0", "DeleteAddress eth0", "GiveBack eth0"]
    assert effects[1].address == IPv4Interface("10.0.0.3/24")  # type: ignore[attr-defined]


def test_an_interface_that_has_gone_needs_nothing() -> None:
    assert difference(Facts(now=0), Plan(interfaces=(InterfacePlan(name="eth9", dhcp=True),)), NONE) == ()


NETWORKS = st.lists(
    st.sampled_from(
        [
            wired("dhcp"),
            wired("eth1", interface="eth1", metric=100),
            wired("static", static=static("10.9.0.5/24", "10.9.0.1"), priority=1),
            wired("elsewhere", static=static("172.16.0.5/16"), interface="eth0"),
            wifi("home"),
            wifi("office", priority=3),
            wifi("adopted", source="adopted"),
        ]
    ),
    unique_by=lambda network: network.label,
    max_size=5,
)
SETTINGS = st.builds(
    lambda networks, enabled, power: Settings(
        networks=tuple(networks), enabled=enabled, hotspot=HOTSPOT, wifi_power_save=power
    ),
    NETWORKS,
    st.sampled_from([True, True, True, False]),
    st.sampled_from([None, True, False]),
)
DECISIONS = st.builds(
    lambda join, hotspot: Decision(join={"wlan0": join} if join else {}, hotspot=hotspot),
    st.sampled_from(["", "home", "office", "adopted"]),
    st.sampled_from(["", "", "wlan0"]),
)
LEASES = st.dictionaries(
    st.sampled_from(["eth0", "eth1", "wlan0"]),
    st.sampled_from(
        [lease(), lease("10.3.0.9/16", "10.3.0.1"), lease("100.64.3.7/32", "100.64.0.1"), lease(gateway="")]
    ),
)
FACTS = st.builds(
    lambda leases, carrier, both: Facts(
        now=0,
        links=(ETH0, replace(ETH1, carrier=carrier), replace(WLAN0, up=carrier)),
        radios=(radio(both=both, blocked="" if both else "soft"),),
        leases=leases,
        associations={"wlan0": association()},
    ),
    LEASES,
    st.booleans(),
    st.booleans(),
)


@settings(max_examples=300, deadline=None)
@given(facts=FACTS, steps=st.lists(st.tuples(SETTINGS, DECISIONS, LEASES), min_size=1, max_size=4))
def test_effects_reach_every_plan_and_keep_what_works(facts: Facts, steps: list[Any]) -> None:
    owned: Owned = NONE
    for chosen, decision, leases in steps:
        facts = replace(facts, leases=leases, associations={"wlan0": association()})
        plan = desired(chosen, facts, decision)
        final, _ = all_applied(facts, owned, plan)
        survivors = [at.name for at in facts.links if works(facts, at.name) and works(final, at.name)]
        for effect in difference(facts, plan, owned):
            facts, owned = applied(facts, owned, effect)
            assert not survivors or any(works(facts, at.name) for at in facts.links), effect
        assert difference(facts, plan, owned) == ()
        names = {planned.name for planned in plan.interfaces}
        assert {at.name for at in facts.links if at.manager == OWN} == names
        assert {name for name, _ in owned} <= names, "addresses of an interface that was given back"
        assert {route.interface for route in facts.routes} <= names
