"""The DNS records of a machine. Pure."""

from __future__ import annotations

from collections.abc import Container, Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from rpc.network.mdns import AAAA, ANY, NSEC, PTR, SRV, TXT, A, Name, Present, Question, Record, Service, key
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
            Record(host, A if isinstance(address, IPv4Address) else AAAA, address, HOST_TTL, flush=True)
            for host in names.hosts
            for address in addresses
        ]
        target = names.hosts[0]
        self.instances: list[Name] = [(instance, *SERVICE) for instance in names.instances]
        self.services = [Record(one, SRV, Service(port, target), HOST_TTL, flush=True) for one in self.instances]
        self.texts = [Record(one, TXT, TEXTS, OTHER_TTL, flush=True) for one in self.instances]
        self.pointers = [Record(SERVICE, PTR, one, OTHER_TTL) for one in self.instances]
        self.kinds = [Record(ENUMERATION, PTR, SERVICE, OTHER_TTL)]
        types = {A if isinstance(address, IPv4Address) else AAAA for address in addresses}
        self.absences = [
            *(Record(host, NSEC, Present(frozenset(types)), HOST_TTL, flush=True) for host in names.hosts),
            *(Record(one, NSEC, Present(frozenset((SRV, TXT))), HOST_TTL, flush=True) for one in self.instances),
        ]

    @property
    def all(self) -> list[Record]:
        """All announced records."""
        return [*self.pointers, *self.kinds, *self.services, *self.texts, *self.addresses]

    @property
    def unique(self) -> list[Record]:
        """The records that only one host may have."""
        return [*self.services, *self.texts, *self.addresses]

    def owns(self, name: Name) -> bool:
        """Return whether `name` is unique to this machine."""
        return any(key(name) == key(one.name) for one in self.unique)

    def answers(self, question: Question) -> list[Record]:
        """Return the records that answer a question.

        Empty for names of others. For a record type that one of the own names lacks, the answer is an NSEC record.
        """
        wanted = key(question.name)
        found = [one for one in self.all if key(one.name) == wanted and question.type in (one.type, ANY)]
        if found or question.type == PTR:
            return found
        return [one for one in self.absences if key(one.name) == wanted]

    def beside(self, answers: Sequence[Record]) -> list[Record]:
        """Return additional records that the receiver of `answers` will need next; RFC 6763 12."""
        wanted = {key(one.data) for one in answers if one.type == PTR and isinstance(one.data, tuple)}  # type: ignore[arg-type]
        found = [one for one in (*self.services, *self.texts) if key(one.name) in wanted]
        hosts = {key(one.data.target) for one in (*answers, *found) if isinstance(one.data, Service)}
        hosts |= {key(one.name) for one in answers if one.type in (A, AAAA)}
        found += [one for one in (*self.addresses, *self.absences) if key(one.name) in hosts]
        return [one for one in found if not any(one.same(other) for other in answers)]

    def contradicts(self, record: Record) -> bool:
        """Return whether `record`, from another host, conflicts with a unique record of this machine."""
        if record.type == NSEC or not record.ttl or not self.owns(record.name):
            return False
        if isinstance(record.data, (IPv4Address, IPv6Address)) and record.data in self._own:
            return False
        mine = [one for one in self.unique if key(one.name) == key(record.name) and one.type == record.type]
        return bool(mine) and not any(one.same(record) for one in mine)
