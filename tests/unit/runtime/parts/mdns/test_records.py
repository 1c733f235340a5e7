"""The DNS records of a machine."""

from __future__ import annotations

from ipaddress import IPv4Address

from runtime.parts.mdns.names import Names
from runtime.parts.mdns.records import SERVICE, Zone


def test_a_machine_owns_the_names_of_its_hosts_and_instances_only() -> None:
    zone = Zone(Names(("rover",), (("pi", "local"),)), 8080, [IPv4Address("192.168.1.5")])
    assert zone.owns(("pi", "local"))
    assert zone.owns(("Rover", *SERVICE))
    assert not zone.owns(("other", "local"))
    assert not zone.owns(SERVICE), "all machines share the name of the service"
