"""Any settings, facts and decisions, for properties."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Interface
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from netmgr.model.decision import NetworkDecision
from netmgr.model.facts import Association, InterfaceAddress, NetworkFacts, WifiRadio
from netmgr.model.network import Open, Personal, StaticAddress, UsableNetwork
from netmgr.model.plan import PROTOCOL
from netmgr.model.settings import NetworkSettings
from netmgr.planning.difference import Owned
from tests.unit.netmgr.planning.support import HOTSPOT, lease, link, route

NAMES = ("eth0", "eth1", "wlan0", "wlan1")
ADDRESSES = ("192.0.2.7/24", "198.51.100.9/32", "10.0.0.2/8")
GATEWAYS = (None, "192.0.2.1", "192.0.2.1", "203.0.113.1", "192.0.2.7")
METRICS = (100, 101, 600)

choice = st.sampled_from
flags: Any = st.booleans()
usually: Any = choice((True, True, True, False))


def network(label: str) -> st.SearchStrategy[UsableNetwork]:
    """Return networks for an interface, which share their SSID and their label with it."""
    static = st.builds(
        StaticAddress,
        address=choice(ADDRESSES).map(IPv4Interface),
        gateway=choice(GATEWAYS).map(lambda text: IPv4Address(text) if text else None),
    )
    return st.builds(
        UsableNetwork,
        label=st.just(label),
        kind=st.just("wired" if label.startswith("e") else "wifi"),
        source=choice(("cloud", "portal", "console", "adopted")),
        interface=choice(("", label)),
        ssid=choice((label.encode(), b"other")),
        security=choice((Open(), Personal(passphrase="12345678"))),
        priority=choice((0, 5)),
        static=st.none() | static,
        dns=choice(((), (IPv4Address("192.0.2.53"),))),
        metric=choice((0, 0, *METRICS)),
    )


leases = st.builds(
    lease,
    address=choice((*ADDRESSES, "10.0.0.3/0", "224.0.0.1/24")),
    gateway=choice((*GATEWAYS, "0.0.0.0")),
    routes=choice(((), (("0.0.0.0/0", "203.0.113.9"),), (("203.0.113.0/24", "0.0.0.0"), ("10.9.0.0/16", "192.0.2.3")))),
    dns=choice(((), ("192.0.2.53", "127.0.0.1"))),
    mtu=choice((None, 68, 1400)),
)
addresses = st.lists(
    st.builds(InterfaceAddress, value=choice(ADDRESSES).map(IPv4Interface), dynamic=flags),
    max_size=2,
    unique_by=lambda each: each.value,
).map(tuple)
managers = choice(("", "NetworkManager", "machine-agent", "machine-agent"))
radios = st.builds(
    WifiRadio, number=st.just(0), hotspot=usually, both=flags, blocked=choice(("", "", "", "soft", "hard"))
)  # fmt: skip


@st.composite
def situations(draw: st.DrawFn) -> tuple[NetworkSettings, NetworkFacts, NetworkDecision, Owned]:
    """Return any settings, facts and decision, and the addresses that netmgr has made."""
    present = [name for name in NAMES if draw(usually)]
    wifi = [name for name in present if name.startswith("w")]
    links = tuple(
        link(name, up=draw(flags), carrier=draw(usually), manager=draw(managers), addresses=draw(addresses))
        for name in present
    )
    settings = NetworkSettings(
        enabled=draw(choice((True,) * 9 + (False,))),
        networks=tuple(draw(network(name)) for name in NAMES if draw(usually)),
        hotspot=draw(choice((None, HOTSPOT, HOTSPOT))),
        country=draw(choice(("", "DE"))),
        wifi_power_save=draw(choice((None, False))),
    )
    joined = {each.label: each for each in settings.networks if each.label in wifi and draw(usually)}
    leased = {name: draw(leases) for name in present if draw(usually)}
    facts = NetworkFacts(
        now=10,
        links=links,
        routes=tuple(
            route(draw(choice(present)), metric, protocol=draw(choice((PROTOCOL, 16))))
            for metric in METRICS
            if present and draw(flags)
        ),
        radios=(draw(radios), replace(draw(radios), number=1)),
        leases=leased,
        dhcp=frozenset(leased),
        joining={name: each.label for name, each in joined.items()},
        clients=joined,
        associations={
            name: Association(ssid=name.encode(), bssid="", frequency=2412) for name in joined if draw(usually)
        },
        hotspot=(hotspot := draw(choice(("", *wifi)))),
        hosted=(draw(choice((HOTSPOT, replace(HOTSPOT, password="another horse")))) if hotspot else None),
    )
    decision = NetworkDecision(
        join={name: draw(choice((name, name, "other"))) for name in wifi if draw(usually)},
        hotspot=draw(choice(("", "", "wlan0", "wlan1"))),
    )
    owned = frozenset(
        (each.name, address.value)
        for each in links
        for address in each.addresses
        if isinstance(address.value, IPv4Interface) and draw(flags)
    )
    return settings, facts, decision, owned
