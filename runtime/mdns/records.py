"""What a machine announces: its names, and the records that stand for them. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from rpc.mdns import AAAA, ANY, MAX_LABEL, NSEC, PTR, SRV, TXT, A, Name, Present, Question, Record, Service, key

Address = IPv4Address | IPv6Address

SERVICE: Final[Name] = ("_rpc", "_tcp", "local")  # of the reference; what official clients ask for
ENUMERATION: Final[Name] = ("_services", "_dns-sd", "_udp", "local")  # RFC 6763 9
HOST_TTL: Final = 120  # seconds, of records with a host's name or address; RFC 6762 10
OTHER_TTL: Final = 4500  # seconds, of the others
TEXTS: Final = (b"grpc",)  # what clients may speak here; the reference knows `webrtc` besides


@dataclass(frozen=True, slots=True)
class Names:
    """Under which names one machine is announced: instances of the service, and hosts below `local`."""

    instances: tuple[str, ...]
    hosts: tuple[Name, ...]

    def renamed(self, number: int) -> Names:
        """The same names with a number, for when somebody else has them; RFC 6762 9."""
        if number < 2:
            return self
        return Names(
            tuple(_numbered(one, number) for one in self.instances),
            tuple((_numbered(host[0], number), *host[1:]) for host in self.hosts),
        )


def names_of(full_names: Iterable[str], host: str) -> Names:
    """Each full name as it is and with dashes for its dots, as official clients ask; the computer's without any."""
    instances: dict[str, None] = {}
    hosts: dict[Name, None] = {}
    known = [name.strip(".") for name in full_names if name.strip(".")] or [host.partition(".")[0] or "machine"]
    for name in known:
        dashed = name.replace(".", "-")
        for one in (name, dashed):
            instances[_cut(one)] = None
        hosts[(_cut(dashed), "local")] = None
        labels = tuple(name.split("."))
        if len(labels) > 1 and all(0 < len(label.encode()) <= MAX_LABEL for label in labels):
            hosts[(*labels, *(() if labels[-1] == "local" else ("local",)))] = None
    return Names(tuple(instances), tuple(hosts))


def _cut(label: str) -> str:
    """At most 63 bytes."""
    return label.encode()[:MAX_LABEL].decode(errors="ignore")


def _numbered(label: str, number: int) -> str:
    end = f"-{number}"
    return label.encode()[: MAX_LABEL - len(end)].decode(errors="ignore") + end


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
