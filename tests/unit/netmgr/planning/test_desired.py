"""The desired state, as tables of cases."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Interface
from typing import Any

import pytest
from msgspec.structs import replace

from netmgr.model.decision import NetworkDecision
from netmgr.model.facts import Association, InterfaceAddress, NetworkFacts, NetworkLink
from netmgr.model.network import UsableNetwork
from netmgr.model.plan import NetworkPlan
from netmgr.model.settings import NetworkSettings
from netmgr.planning.desired import desired
from tests.unit.netmgr.planning.support import HOME, HOTSPOT, RADIO, WIRED, lease, link, route, static

NM = "NetworkManager"
DYNAMIC = (InterfaceAddress(lease().address, dynamic=True),)
ADOPTED = replace(WIRED, label="adopted: wire", source="adopted")
ETH0, ETH1, WLAN0, WLAN1 = link("eth0"), link("eth1"), link("wlan0"), link("wlan1")
JOIN = NetworkDecision(join={"wlan0": "home"})
BOTH = NetworkDecision(join={"wlan0": "home"}, hotspot="wlan0")


def facts(*links: NetworkLink, **values: Any) -> NetworkFacts:
    """Return facts in which wlan0 is connected with `home`, unless `values` say otherwise."""
    joined: dict[str, Any] = {}
    if any(each.name == "wlan0" for each in links):
        joined = {
            "associations": {"wlan0": Association(ssid=b"home", bssid="", frequency=2412)},
            "joining": {"wlan0": "home"},
        }
    radios = tuple(replace(RADIO, number=each.radio) for each in links if each.radio is not None)
    return NetworkFacts(now=0, links=links, **{"radios": radios, **joined, **values})


def plan(
    *networks: UsableNetwork, facts: NetworkFacts, decision: NetworkDecision | None = None, **values: Any
) -> NetworkPlan:
    return desired(
        NetworkSettings(networks=networks, **{"hotspot": HOTSPOT, **values}), facts, decision or NetworkDecision()
    )


def planned_routes(result: NetworkPlan) -> list[str]:
    """Return the routes as text, in the order of the interfaces."""
    return [
        f"{each.destination} via {each.gateway} dev {interface.name} metric {each.metric}"
        for interface in result.interfaces
        for each in sorted(interface.routes, key=lambda each: (each.gateway is not None, str(each.destination)))
    ]


# ---- which interfaces are managed, and with which network


def case(name: str, result: dict[str, str], networks: list[UsableNetwork], *links: NetworkLink, **values: Any) -> Any:
    """Return a case: the label of the network by managed interface, empty without a network."""
    return pytest.param(result, networks, links, values, id=name)


@pytest.mark.parametrize(
    ("result", "networks", "links", "values"),
    [
        case("nothing is asked for", {}, [], ETH0, WLAN0),
        case("turned off", {}, [WIRED, HOME], ETH0, WLAN0, decision=BOTH, enabled=False),
        case("wired", {"eth0": "wire"}, [WIRED], ETH0),
        case("wired of the portal", {"eth0": "wire"}, [replace(WIRED, source="portal")], ETH0),
        case("wired of another manager", {"eth0": "wire"}, [WIRED], link("eth0", manager=NM)),
        case("wired, that the manager does", {}, [WIRED], link("eth0", manager=NM, addresses=DYNAMIC)),
        case("wired, that the manager is about to do", {}, [WIRED, ADOPTED], link("eth0", manager=NM)),
        case("wired, another manager, no cable", {}, [WIRED], link("eth0", manager=NM, carrier=False)),
        case("wired, no cable", {"eth0": "wire"}, [WIRED], link("eth0", carrier=False)),
        case("only adopted", {}, [ADOPTED], link("eth0", manager=NM)),
        case("only adopted, after it was taken over", {}, [ADOPTED], link("eth0", manager="machine-agent")),
        case("adopted with a higher priority", {}, [WIRED, replace(ADOPTED, priority=1)], ETH0),
        case(
            "static, that the manager does not do",
            {"eth0": "wire"},
            [replace(WIRED, static=static("192.0.2.9/24"))],
            link("eth0", manager=NM, addresses=DYNAMIC),
        ),
        case(
            "name servers that the manager does not use",
            {"eth0": "wire"},
            [replace(WIRED, dns=(IPv4Address("192.0.2.53"),))],
            link("eth0", manager=NM, addresses=DYNAMIC),
        ),
        case(
            "a metric that the manager does not use",
            {"eth0": "wire"},
            [replace(WIRED, metric=7)],
            link("eth0", manager=NM, addresses=DYNAMIC),
        ),
        case(
            "by interface and priority",
            {"eth0": "b", "eth1": "c"},
            [
                replace(WIRED, label="a"),
                replace(WIRED, label="b", priority=5),
                replace(WIRED, label="c", priority=9, interface="eth1"),
            ],
            ETH0,
            ETH1,
        ),
        case(
            "a static address only once, where the cable is",
            {"eth0": "wire", "eth1": "static"},
            [WIRED, replace(WIRED, label="static", priority=5, static=static("192.0.2.9/24"))],
            link("eth0", carrier=False),
            ETH1,
        ),
        case(
            "links of other kinds",
            {},
            [replace(WIRED, interface="docker0")],
            link("docker0"),
            decision=NetworkDecision(),
        ),
        case("a removed link", {}, [HOME], decision=BOTH),
        case("wifi", {"wlan0": "home"}, [HOME], WLAN0, decision=JOIN),
        case("wifi of another manager, that it uses", {}, [HOME], link("wlan0", manager=NM, addresses=DYNAMIC)),
        case("wifi of another manager, not decided", {}, [HOME], link("wlan0", manager=NM)),
        case(
            "wifi that the manager uses",
            {},
            [HOME],
            link("wlan0", manager=NM, addresses=DYNAMIC),
            decision=JOIN,
        ),
        case(
            "wifi, the manager is connected elsewhere",
            {"wlan0": "home"},
            [HOME, replace(HOME, label="adopted: home", source="adopted")],
            link("wlan0", manager=NM, addresses=DYNAMIC),
            decision=JOIN,
            associations={"wlan0": Association(ssid=b"other", bssid="", frequency=2412)},
        ),
        case(
            "wifi that the manager knows, before it is connected",
            {},
            [HOME, replace(HOME, label="adopted: home", source="adopted")],
            link("wlan0", manager=NM),
            decision=JOIN,
            associations={},
        ),
        case("adopted wifi", {}, [replace(HOME, source="adopted")], link("wlan0", manager=NM), decision=JOIN),
        case(
            "adopted wifi, on an interface that was taken over",
            {"wlan0": "home"},
            [replace(HOME, source="adopted")],
            link("wlan0", manager="machine-agent"),
            decision=JOIN,
        ),
        case("wifi, between two networks", {"wlan0": ""}, [HOME], link("wlan0", manager="machine-agent")),
        case(
            "a label that is not in the settings",
            {"wlan0": ""},
            [HOME],
            WLAN0,
            decision=NetworkDecision(join={"wlan0": "x"}),
        ),
        case("the first wifi interface", {"wlan0": ""}, [HOME], WLAN1, WLAN0),
        case("the wifi interface of the settings", {"wlan1": ""}, [HOME], WLAN1, WLAN0, wifi_interface="wlan1"),
        case("a wired network on wifi", {}, [WIRED], WLAN0, decision=NetworkDecision(join={"wlan0": "wire"})),
        case("hotspot", {"wlan0": ""}, [], link("wlan0", manager=NM), decision=NetworkDecision(hotspot="wlan0")),
        case("hotspot on a radio that cannot", {}, [], WLAN0, decision=NetworkDecision(hotspot="wlan0"), radios=()),
        case("hotspot without settings", {}, [], WLAN0, decision=NetworkDecision(hotspot="wlan0"), hotspot=None),
        case("hotspot on a radio that does one thing", {"wlan0": ""}, [HOME], WLAN0, decision=BOTH),
        case(
            "hotspot with a client",
            {"wlan0": "home"},
            [HOME],
            WLAN0,
            decision=BOTH,
            radios=(replace(RADIO, both=True),),
        ),
        case(
            "hotspot and client on two radios",
            {"wlan0": "home", "wlan1": ""},
            [HOME],
            WLAN0,
            WLAN1,
            decision=NetworkDecision(join={"wlan0": "home"}, hotspot="wlan1"),
        ),
        case(
            "hotspot and client on two interfaces of one radio",
            {"wlan0": "", "wlan1": ""},
            [HOME],
            WLAN0,
            link("wlan1", radio=0),
            decision=NetworkDecision(join={"wlan0": "home"}, hotspot="wlan1"),
            radios=(RADIO,),
        ),
        case("a switch turned wifi off", {}, [HOME], WLAN0, decision=JOIN, radios=(replace(RADIO, blocked="hard"),)),
        case(
            "a switch turned the radio of netmgr off",
            {"wlan0": ""},
            [HOME],
            link("wlan0", manager="machine-agent"),
            decision=BOTH,
            radios=(replace(RADIO, blocked="hard"),),
        ),
    ],
)
def test_networks_of_interfaces(
    result: dict[str, str], networks: list[UsableNetwork], links: tuple[NetworkLink, ...], values: dict[str, Any]
) -> None:
    observed = {key: value for key, value in values.items() if key in ("associations", "radios")}
    others = {key: value for key, value in values.items() if key not in observed}
    planned = plan(*networks, facts=facts(*links, **observed), **others)
    assert {each.name: each.network.label if each.network else "" for each in planned.interfaces} == result


@pytest.mark.parametrize(
    ("radio", "decision", "expected"),
    [
        (RADIO, NetworkDecision(hotspot="wlan0"), True),
        (RADIO, BOTH, True),
        (replace(RADIO, both=True), BOTH, True),
        (replace(RADIO, hotspot=False), BOTH, False),
        (replace(RADIO, blocked="hard"), BOTH, False),
        (RADIO, JOIN, False),
    ],
)
def test_hotspot(radio: Any, decision: NetworkDecision, expected: bool) -> None:
    state = facts(link("wlan0", manager="machine-agent"), radios=(radio,))
    (interface,) = plan(HOME, facts=state, decision=decision).interfaces
    assert interface.hotspot == (HOTSPOT if expected else None)


# ---- addresses and routes


@pytest.mark.parametrize(
    ("network", "leases", "addresses", "routes"),
    [
        (WIRED, {}, [], []),
        (
            WIRED,
            {"eth0": lease()},
            ["192.0.2.7/24"],
            ["0.0.0.0/0 via 192.0.2.1 dev eth0 metric 100"],
        ),
        (WIRED, {"eth0": lease(gateway=None)}, ["192.0.2.7/24"], []),
        (WIRED, {"eth1": lease()}, [], []),
        (replace(WIRED, metric=5), {"eth0": lease()}, ["192.0.2.7/24"], ["0.0.0.0/0 via 192.0.2.1 dev eth0 metric 5"]),
        (
            WIRED,
            {"eth0": lease(gateway="203.0.113.1")},
            ["192.0.2.7/24"],
            [
                "203.0.113.1/32 via None dev eth0 metric 100",
                "0.0.0.0/0 via 203.0.113.1 dev eth0 metric 100",
            ],
        ),
        (  # RFC 3442: the routes replace the gateway, and 0.0.0.0 is on the link
            WIRED,
            {"eth0": lease(routes=[("198.51.100.0/24", "0.0.0.0"), ("203.0.113.0/24", "192.0.2.3")])},
            ["192.0.2.7/24"],
            [
                "198.51.100.0/24 via None dev eth0 metric 100",
                "203.0.113.0/24 via 192.0.2.3 dev eth0 metric 100",
            ],
        ),
        (  # of two routes to a destination, the first counts
            WIRED,
            {"eth0": lease(routes=[("0.0.0.0/0", "192.0.2.2"), ("0.0.0.0/0", "192.0.2.3")])},
            ["192.0.2.7/24"],
            ["0.0.0.0/0 via 192.0.2.2 dev eth0 metric 100"],
        ),
        (WIRED, {"eth0": lease(gateway="192.0.2.7")}, ["192.0.2.7/24"], []),  # a server that lies
        (WIRED, {"eth0": lease(gateway="0.0.0.0")}, ["192.0.2.7/24"], []),
        (WIRED, {"eth0": lease(gateway="224.0.0.1")}, ["192.0.2.7/24"], []),
        (WIRED, {"eth0": lease(routes=[("127.0.0.0/8", "192.0.2.3")])}, ["192.0.2.7/24"], []),
        (WIRED, {"eth0": lease(routes=[("0.0.0.0/0", "0.0.0.0")])}, ["192.0.2.7/24"], []),
        (WIRED, {"eth0": lease("192.0.2.7/0")}, [], []),  # its subnet would replace every default route
        (WIRED, {"eth0": lease("192.0.2.7/7")}, [], []),
        (WIRED, {"eth0": lease("127.0.0.1/8")}, [], []),
        (WIRED, {"eth0": lease("0.0.0.0/24")}, [], []),
        (
            replace(WIRED, static=static("192.0.2.9/24", "192.0.2.1")),
            {"eth0": lease()},
            ["192.0.2.9/24"],
            ["0.0.0.0/0 via 192.0.2.1 dev eth0 metric 100"],
        ),
        (replace(WIRED, static=static("192.0.2.9/24")), {}, ["192.0.2.9/24"], []),
        (
            replace(WIRED, static=static("192.0.2.9/32", "192.0.2.1")),
            {},
            ["192.0.2.9/32"],
            ["192.0.2.1/32 via None dev eth0 metric 100", "0.0.0.0/0 via 192.0.2.1 dev eth0 metric 100"],
        ),
    ],
)
def test_addresses_and_routes(network: UsableNetwork, leases: Any, addresses: list[str], routes: list[str]) -> None:
    result = plan(network, facts=facts(ETH0, leases=leases))
    (interface,) = result.interfaces
    assert sorted(map(str, interface.addresses)) == addresses
    assert planned_routes(result) == routes
    assert interface.dhcp == (network.static is None)


@pytest.mark.parametrize(
    ("name", "observed"),
    [
        ("eth0", facts(link("eth0", carrier=False), leases={"eth0": lease()})),
        ("wlan0", facts(WLAN0, associations={}, leases={"wlan0": lease()})),
        ("wlan0", facts(WLAN0, joining={"wlan0": "former"}, leases={"wlan0": lease()})),
        (
            "wlan0",
            facts(
                WLAN0,
                associations={"wlan0": Association(ssid=b"other", bssid="", frequency=2412)},
                leases={"wlan0": lease()},
            ),
        ),
    ],
)
def test_nothing_is_configured_without_a_connection(name: str, observed: NetworkFacts) -> None:
    result = plan(WIRED, HOME, facts=observed, decision=JOIN)
    (interface,) = result.interfaces
    assert interface.name == name
    assert (interface.dhcp, interface.addresses, interface.routes, result.dns) == (False, frozenset(), frozenset(), {})
    assert interface.ra_metric is not None


# ---- metrics


@pytest.mark.parametrize(
    ("networks", "routes", "metrics"),
    [
        ([WIRED, HOME], [], {"eth0": 100, "eth1": 101, "wlan0": 600}),
        ([replace(WIRED, metric=600), HOME], [], {"eth0": 600, "eth1": 601, "wlan0": 602}),
        (
            [replace(WIRED, metric=101, interface="eth0"), replace(WIRED, label="second", interface="eth1")],
            [],
            {"eth1": 100, "eth0": 101},
        ),
        ([WIRED], [route("docker0", 100, protocol=4)], {"eth0": 101, "eth1": 102}),  # of another program
        ([WIRED], [route("eth1", 100, protocol=16)], {"eth0": 100, "eth1": 101}),  # removed when it is taken over
        ([WIRED], [route("eth1", 100)], {"eth0": 100, "eth1": 101}),  # of netmgr itself
    ],
)
def test_metrics(networks: list[UsableNetwork], routes: Any, metrics: dict[str, int]) -> None:
    state = facts(ETH1, ETH0, WLAN0, link("docker0"), routes=tuple(routes))
    result = plan(*networks, facts=state, decision=JOIN)
    planned = {each.name: each.ra_metric for each in result.interfaces if each.ra_metric is not None}
    assert list(planned.items()) == list(metrics.items())


def test_two_gateways_have_different_metrics() -> None:
    leases = {"eth0": lease(), "eth1": lease("198.51.100.7/24", "198.51.100.1")}
    assert planned_routes(plan(WIRED, facts=facts(ETH1, ETH0, leases=leases))) == [
        "0.0.0.0/0 via 192.0.2.1 dev eth0 metric 100",
        "0.0.0.0/0 via 198.51.100.1 dev eth1 metric 101",
    ]


# ---- name servers, MTU, radios


def test_name_servers_are_in_the_order_of_metrics() -> None:
    network = replace(WIRED, dns=(IPv4Address("203.0.113.53"),))
    leases = {
        "wlan0": lease(dns=["198.51.100.53"]),
        "eth0": lease(dns=["192.0.2.53", "203.0.113.53", "127.0.0.1"], domains=("example",)),
    }
    result = plan(network, HOME, facts=facts(WLAN0, ETH0, leases=leases), decision=JOIN)
    assert list(result.dns.items()) == [("eth0", ("203.0.113.53", "192.0.2.53")), ("wlan0", ("198.51.100.53",))]
    assert result.domains == {"eth0": ("example",)}


@pytest.mark.parametrize(
    ("mtu", "expected"), [(None, None), (68, None), (1279, None), (1280, 1280), (9000, 9000), (65535, None)]
)
def test_mtu(mtu: int | None, expected: int | None) -> None:
    (interface,) = plan(WIRED, facts=facts(ETH0, leases={"eth0": lease(mtu=mtu)})).interfaces
    assert interface.mtu == expected


def test_radio_settings() -> None:
    state = facts(ETH0, WLAN0, WLAN1, radios=tuple(replace(RADIO, number=n, blocked="soft") for n in (0, 1)))
    result = plan(WIRED, HOME, facts=state, decision=JOIN, wifi_power_save=False, country="DE")
    assert {each.name: each.power_save for each in result.interfaces} == {"eth0": None, "wlan0": False}
    assert (result.country, result.unblock) == ("DE", (0,))  # radio 1 is not needed
    assert plan(WIRED, facts=facts(ETH0), country="DE").country == ""


@pytest.mark.parametrize(
    ("address", "running", "expected"),
    [
        ("192.168.1.5/24", None, "10.42.0.1/24"),
        ("10.42.0.77/24", None, "10.43.0.1/24"),
        ("10.0.0.5/8", None, "192.168.242.1/24"),
        ("192.168.1.5/24", "10.43.0.1/24", "10.43.0.1/24"),
        ("10.43.0.9/16", "10.43.0.1/24", "10.42.0.1/24"),
    ],
)
def test_the_hotspot_uses_a_network_that_no_other_interface_has(
    address: str, running: str | None, expected: str
) -> None:
    hosted = replace(HOTSPOT, address=IPv4Interface(running)) if running else None
    links = (
        link("eth0", addresses=(InterfaceAddress(IPv4Interface(address)),)),
        link("wlan0", manager="machine-agent", addresses=(InterfaceAddress(HOTSPOT.address),)),
    )
    state = replace(facts(*links, radios=(RADIO,)), hosted=hosted)
    planned = desired(NetworkSettings(hotspot=HOTSPOT), state, NetworkDecision(hotspot="wlan0"))
    hotspot = next(each.hotspot for each in planned.interfaces if each.name == "wlan0")
    assert hotspot is not None
    assert str(hotspot.address) == expected
