"""The desired state: which interfaces netmgr manages, and their addresses, routes and name servers."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Interface, IPv4Network

import pytest
from msgspec.structs import replace

from netmgr.model.decision import Decision
from netmgr.model.facts import OWN, Facts, Link
from netmgr.model.plan import InterfacePlan, Plan
from netmgr.model.settings import Settings
from netmgr.planning.desired import desired
from tests.unit.netmgr.planning.model import HOTSPOT, association, lease, link, radio, static, wifi, wired

NOTHING = Decision()
ETH0, ETH1, WLAN0 = link("eth0"), link("eth1"), link("wlan0")
ANY = IPv4Network("0.0.0.0/0")


def plan_of(plan: Plan, name: str) -> InterfacePlan:
    return next(planned for planned in plan.interfaces if planned.name == name)


def managed(plan: Plan) -> list[str]:
    return sorted(planned.name for planned in plan.interfaces)


def defaults(plan: Plan) -> dict[str, tuple[str, int]]:
    return {
        planned.name: (str(route.gateway), route.metric)
        for planned in plan.interfaces
        for route in planned.routes
        if route.destination == ANY
    }


@pytest.mark.parametrize(
    ("settings", "links", "decision", "names"),
    [
        pytest.param(Settings(), [ETH0, WLAN0], NOTHING, [], id="nothing is asked for"),
        pytest.param(Settings(networks=(wired(),), enabled=False), [ETH0], NOTHING, [], id="disabled"),
        pytest.param(Settings(networks=(wired(),)), [ETH0, WLAN0], NOTHING, ["eth0"], id="a wired network"),
        pytest.param(
            Settings(networks=(wired(interface="eth1"),)), [ETH0, ETH1], NOTHING, ["eth1"], id="for one interface"
        ),
        pytest.param(Settings(networks=(wired(source="adopted"),)), [ETH0], NOTHING, [], id="the manager's own"),
        pytest.param(
            Settings(networks=(wired(source="adopted"),)),
            [replace(ETH0, manager="")], NOTHING, ["eth0"], id="a network whose manager has gone",
        ),
        pytest.param(
            Settings(networks=(wired(),)), [link("eth0", kind="other")], NOTHING, [], id="a bridge is never configured"
        ),
        pytest.param(
            Settings(networks=(wifi(),)), [ETH0, WLAN0], Decision(join={"wlan0": "home"}), ["wlan0"], id="a network"
        ),
        pytest.param(
            Settings(networks=(wifi(),)), [WLAN0], NOTHING, [], id="a wifi network that is not to be joined"
        ),
        pytest.param(
            Settings(networks=(wifi(source="adopted"),)),
            [WLAN0], Decision(join={"wlan0": "home"}), [], id="a wifi network that its manager joins",
        ),
        pytest.param(
            Settings(networks=(wifi(source="adopted"),)),
            [replace(WLAN0, manager=OWN)], Decision(join={"wlan0": "home"}), ["wlan0"], id="adopted before",
        ),
        pytest.param(Settings(hotspot=HOTSPOT), [WLAN0], Decision(hotspot="wlan0"), ["wlan0"], id="the hotspot"),
        pytest.param(
            Settings(), [replace(WLAN0, manager=OWN)], NOTHING, ["wlan0"], id="a radio that waits for its next network"
        ),
        pytest.param(Settings(), [replace(ETH0, manager=OWN)], NOTHING, [], id="a cable that is given back"),
    ],
)  # fmt: skip
def test_interfaces_are_managed_only_for_a_reason(
    settings: Settings, links: list[Link], decision: Decision, names: list[str]
) -> None:
    assert managed(desired(settings, Facts(now=0, links=tuple(links)), decision)) == names


def test_two_gateways_have_different_metrics() -> None:
    networks = (
        wired("a", interface="eth0", static=static("10.0.0.5/24", "10.0.0.1")),
        wired("b", interface="eth1"),
        wifi(),
    )
    facts = Facts(
        now=0,
        links=(ETH0, ETH1, WLAN0),
        leases={"eth1": lease(), "wlan0": lease("192.168.7.9/24", "192.168.7.1")},
        associations={"wlan0": association()},
        joining={"wlan0": wifi()},
    )
    plan = desired(Settings(networks=networks), facts, Decision(join={"wlan0": "home"}))
    assert defaults(plan) == {"eth0": ("10.0.0.1", 100), "eth1": ("192.168.1.1", 101), "wlan0": ("192.168.7.1", 600)}
    assert [plan_of(plan, name).ra_metric for name in ("eth0", "eth1", "wlan0")] == [100, 101, 600]
    assert plan.dns == {"eth1": ("192.168.1.1",), "wlan0": ("192.168.7.1",)}
    assert list(plan.dns) == ["eth1", "wlan0"]


def test_a_lease_of_the_former_network_is_not_used() -> None:
    facts = Facts(now=0, links=(WLAN0,), leases={"wlan0": lease()}, associations={"wlan0": association("office")})
    planned = plan_of(desired(Settings(networks=(wifi(),)), facts, Decision(join={"wlan0": "home"})), "wlan0")
    assert not planned.dhcp
    assert not planned.addresses
    facts = replace(facts, joining={"wlan0": wifi()})
    planned = plan_of(desired(Settings(networks=(wifi(),)), facts, Decision(join={"wlan0": "home"})), "wlan0")
    assert planned.dhcp
    assert planned.addresses == {IPv4Interface("192.168.1.50/24")}


def test_configured_metrics_decide_the_order_of_name_servers() -> None:
    networks = (
        wired("a", interface="eth0", metric=700),
        wired("b", interface="eth1", metric=50, dns=(IPv4Address("9.9.9.9"),)),
    )
    facts = Facts(now=0, links=(ETH0, ETH1), leases={"eth0": lease(), "eth1": lease("10.1.0.2/16", "10.1.0.1")})
    plan = desired(Settings(networks=networks), facts, NOTHING)
    assert list(plan.dns.items()) == [("eth1", ("9.9.9.9", "10.1.0.1")), ("eth0", ("192.168.1.1",))]
    assert defaults(plan) == {"eth0": ("192.168.1.1", 700), "eth1": ("10.1.0.1", 50)}


def test_dhcp_is_asked_only_with_a_cable_and_the_address_survives_without_one() -> None:
    settings = Settings(networks=(wired(),))
    out = replace(ETH0, carrier=False)
    assert plan_of(desired(settings, Facts(now=0, links=(ETH0,)), NOTHING), "eth0").dhcp
    plan = desired(settings, Facts(now=0, links=(out,), leases={"eth0": lease()}), NOTHING)
    assert not plan_of(plan, "eth0").dhcp
    assert plan_of(plan, "eth0").addresses == {IPv4Interface("192.168.1.50/24")}
    assert plan.dns == {}, "its name servers would only delay every look-up"


@pytest.mark.parametrize(
    ("granted", "routes"),
    [
        pytest.param(lease(), {"192.168.1.0/24": None, "0.0.0.0/0": "192.168.1.1"}, id="usual"),
        pytest.param(lease(gateway=""), {"192.168.1.0/24": None}, id="no gateway"),
        pytest.param(
            lease("100.64.3.7/32", "100.64.0.1"),
            {"100.64.0.1/32": None, "0.0.0.0/0": "100.64.0.1"}, id="a gateway outside the network",
        ),
        pytest.param(
            lease(routes=((IPv4Network("10.0.0.0/8"), IPv4Address("192.168.1.2")),)),
            {"192.168.1.0/24": None, "10.0.0.0/8": "192.168.1.2"}, id="classless routes replace the gateway",
        ),
        pytest.param(
            lease(routes=((IPv4Network("10.0.0.0/8"), IPv4Address("0.0.0.0")),)),
            {"192.168.1.0/24": None, "10.0.0.0/8": None}, id="a classless route on the link",
        ),
    ],
)  # fmt: skip
def test_routes_of_a_lease(granted: object, routes: dict[str, str | None]) -> None:
    plan = desired(Settings(networks=(wired(),)), Facts(now=0, links=(ETH0,), leases={"eth0": granted}), NOTHING)  # type: ignore[dict-item]
    planned = {str(r.destination): str(r.gateway) if r.gateway else None for r in plan_of(plan, "eth0").routes}
    assert planned == routes


@pytest.mark.parametrize(("mtu", "used"), [(1400, 1400), (576, None), (65535, None), (None, None), (9000, 9000)])
def test_an_mtu_that_breaks_the_connection_is_ignored(mtu: int | None, used: int | None) -> None:
    facts = Facts(now=0, links=(ETH0,), leases={"eth0": lease(mtu=mtu)})
    assert plan_of(desired(Settings(networks=(wired(),)), facts, NOTHING), "eth0").mtu == used


def test_a_static_address_is_used_on_one_link_the_one_with_a_cable() -> None:
    fixed = wired(static=static("10.0.0.5/24"))
    settings = Settings(networks=(fixed, wired("dhcp", priority=-1)))
    facts = Facts(now=0, links=(replace(ETH0, carrier=False), ETH1))
    plan = desired(settings, facts, NOTHING)
    assert plan_of(plan, "eth1").network == fixed
    assert plan_of(plan, "eth0").network == wired("dhcp", priority=-1)


def test_priority_and_then_the_own_interface_choose_the_wired_network() -> None:
    networks = (wired("a"), wired("b", interface="eth0"), wired("c", priority=5))
    plan = desired(Settings(networks=networks), Facts(now=0, links=(ETH0,)), NOTHING)
    assert plan_of(plan, "eth0").network == networks[2]
    plan = desired(Settings(networks=networks[:2]), Facts(now=0, links=(ETH0,)), NOTHING)
    assert plan_of(plan, "eth0").network == networks[1]


@pytest.mark.parametrize("both", [True, False])
def test_only_some_radios_join_a_network_during_the_hotspot(both: bool) -> None:
    facts = Facts(now=0, links=(WLAN0,), radios=(radio(both=both),))
    decision = Decision(join={"wlan0": "home"}, hotspot="wlan0")
    planned = plan_of(desired(Settings(networks=(wifi(),), hotspot=HOTSPOT), facts, decision), "wlan0")
    assert planned.hotspot == HOTSPOT
    assert (planned.network is not None) == both


def test_soft_blocks_are_removed_only_from_radios_in_use() -> None:
    facts = Facts(now=0, links=(WLAN0, link("wlan1")), radios=(radio(0, blocked="soft"), radio(1, blocked="soft")))
    plan = desired(Settings(networks=(wifi(),), country="DE"), facts, Decision(join={"wlan0": "home"}))
    assert plan.unblock == (0,)
    assert plan.country == "DE"
    hard = replace(facts, radios=(radio(0, blocked="hard"),))
    assert desired(Settings(networks=(wifi(),)), hard, Decision(join={"wlan0": "home"})).unblock == ()
