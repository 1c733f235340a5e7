"""The DNS records of a machine. Pure."""

from __future__ import annotations

from collections.abc import Container, Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from rpc.network.mdns import AAAA, ANY, NSEC, PTR, SRV, TXT, A, DnsRecord, Name, Present, Question, Service, key
from runtime.parts.mdns.names import Names

Address = IPv4Address | IPv6Address

SERVICE: Final[Name] = ("_rpc", "_tcp", "local")  # reference value, which official clients ask for
ENUMERATION: Final[Name] = ("_services", "_dns-sd", "_udp", "local")  # RFC 6763 9
HOST_TTL: Final = 120  # seconds; for records with a host's name or address; RFC 6762 10
OTHER_TTL: Final = 4500  # seconds; for other records
TEXTS: Final = (b"grpc",)  # supported protocols; the reference also has `webrtc`


class Zone:
    """All records of one machine on one interface."""

    def __init__(
        self, names: Names, port: int, addresses: Sequence[Address], own: Container[Address] = frozenset()
    ) -> None:
        """Create the records. `own` are all addresses of this computer, whose interfaces may hear each other."""
        self._own = own
        self.addresses = [
            DnsRecord(host, A if isinstance(address, IPv4Address) else AAAA, address, HOST_TTL, flush=True)
            for host in names.hosts
            for address in addresses
        ]
        target = names.hosts[0]
        self.instances: list[Name] = [(instance, *SERVICE) for instance in names.instances]
        self.services = [
            DnsRecord(instance, SRV, Service(port, target), HOST_TTL, flush=True) for instance in self.instances
        ]
        self.texts = [DnsRecord(instance, TXT, TEXTS, OTHER_TTL, flush=True) for instance in self.instances]
        self.pointers = [DnsRecord(SERVICE, PTR, instance, OTHER_TTL) for instance in self.instances]
        self.kinds = [DnsRecord(ENUMERATION, PTR, SERVICE, OTHER_TTL)]
        types = {A if isinstance(address, IPv4Address) else AAAA for address in addresses}
        self.absences = [
            *(DnsRecord(host, NSEC, Present(frozenset(types)), HOST_TTL, flush=True) for host in names.hosts),
            *(
                DnsRecord(instance, NSEC, Present(frozenset((SRV, TXT))), HOST_TTL, flush=True)
                for instance in self.instances
            ),
        ]

    @property
    def all(self) -> list[DnsRecord]:
        """All announced records."""
        return [*self.pointers, *self.kinds, *self.services, *self.texts, *self.addresses]

    @property
    def unique(self) -> list[DnsRecord]:
        """The records that only one host may have."""
        return [*self.services, *self.texts, *self.addresses]

    def owns(self, name: Name) -> bool:
        """Return whether `name` is unique to this machine."""
        return any(key(name) == key(record.name) for record in self.unique)

    def answers(self, question: Question) -> list[DnsRecord]:
        """Return the records that answer a question.

        Empty for names of others. For a record type that one of the own names lacks, the answer is an NSEC record.
        """
        name = key(question.name)
        records = [record for record in self.all if key(record.name) == name and question.type in (record.type, ANY)]
        if records or question.type == PTR:
            return records
        return [record for record in self.absences if key(record.name) == name]

    def additionals(self, answers: Sequence[DnsRecord]) -> list[DnsRecord]:
        """Return additional records that the receiver of `answers` will need next; RFC 6763 12."""
        instances = {key(record.data) for record in answers if record.type == PTR and isinstance(record.data, tuple)}  # type: ignore[arg-type]
        records = [record for record in (*self.services, *self.texts) if key(record.name) in instances]
        hosts = {key(record.data.target) for record in (*answers, *records) if isinstance(record.data, Service)}
        hosts |= {key(record.name) for record in answers if record.type in (A, AAAA)}
        records += [record for record in (*self.addresses, *self.absences) if key(record.name) in hosts]
        return [record for record in records if not any(record.same(other) for other in answers)]

    def contradicts(self, record: DnsRecord) -> bool:
        """Return whether `record`, from another host, conflicts with a unique record of this machine."""
        if record.type == NSEC or not record.ttl or not self.owns(record.name):
            return False
        if isinstance(record.data, (IPv4Address, IPv6Address)) and record.data in self._own:
            return False
        own = [ours for ours in self.unique if key(ours.name) == key(record.name) and ours.type == record.type]
        return bool(own) and not any(ours.same(record) for ours in own)
