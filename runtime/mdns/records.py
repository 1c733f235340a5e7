"""The records that stand for the names of a machine. Pure."""

from __future__ import annotations

from collections.abc import Container, Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from rpc.mdns import AAAA, ANY, NSEC, PTR, SRV, TXT, A, Name, Present, Question, Record, Service, key
from runtime.mdns.names import Names

Address = IPv4Address | IPv6Address

SERVICE: Final[Name] = ("_rpc", "_tcp", "local")  # of the reference; what official clients ask for
ENUMERATION: Final[Name] = ("_services", "_dns-sd", "_udp", "local")  # RFC 6763 9
HOST_TTL: Final = 120  # seconds, of records with a host's name or address; RFC 6762 10
OTHER_TTL: Final = 4500  # seconds, of the others
TEXTS: Final = (b"grpc",)  # what clients may speak here; the reference knows `webrtc` besides


class Zone:
    """All records of one machine on one interface."""

    def __init__(
        self, names: Names, port: int, addresses: Sequence[Address], own: Container[Address] = frozenset()
    ) -> None:
        """`own`: all that this computer has, as several interfaces on one network hear each other."""
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
        """What is announced, in an order that is good to read."""
        return [*self.pointers, *self.kinds, *self.services, *self.texts, *self.addresses]

    @property
    def unique(self) -> list[Record]:
        """What nobody else may have under these names."""
        return [*self.services, *self.texts, *self.addresses]

    def owns(self, name: Name) -> bool:
        """Whether this name is this machine's alone."""
        return any(key(name) == key(one.name) for one in self.unique)

    def answers(self, question: Question) -> list[Record]:
        """What answers a question: nothing if the name is not known here; a type that is known to be absent too."""
        wanted = key(question.name)
        found = [one for one in self.all if key(one.name) == wanted and question.type in (one.type, ANY)]
        if found or question.type == PTR:
            return found
        return [one for one in self.absences if key(one.name) == wanted]

    def beside(self, answers: Sequence[Record]) -> list[Record]:
        """What whoever gets `answers` will ask for next; RFC 6763 12."""
        wanted = {key(one.data) for one in answers if one.type == PTR and isinstance(one.data, tuple)}  # type: ignore[arg-type]
        found = [one for one in (*self.services, *self.texts) if key(one.name) in wanted]
        hosts = {key(one.data.target) for one in (*answers, *found) if isinstance(one.data, Service)}
        hosts |= {key(one.name) for one in answers if one.type in (A, AAAA)}
        found += [one for one in (*self.addresses, *self.absences) if key(one.name) in hosts]
        return [one for one in found if not any(one.same(other) for other in answers)]

    def contradicts(self, record: Record) -> bool:
        """Whether somebody else says something different under a name that is this machine's alone."""
        if record.type == NSEC or not record.ttl or not self.owns(record.name):
            return False
        if isinstance(record.data, (IPv4Address, IPv6Address)) and record.data in self._own:
            return False
        mine = [one for one in self.unique if key(one.name) == key(record.name) and one.type == record.type]
        return bool(mine) and not any(one.same(record) for one in mine)
