"""Certificates for machines: the names that a caller may claim, and the call that issues them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from cloud.domain.certificates import parts
from cloud.domain.certificates.issue import CertificatePair
from cloud.domain.certificates.machine_names import canonical, names_for
from cloud.domain.configurations import configurations
from cloud.domain.machines import machines
from cloud.domain.permissions.access import ObjectKind, Role
from cloud.domain.permissions.rules import allow, machine
from cloud.services.common.base import Service
from cloud.store.sql import Sql
from cloud.values.author import MACHINES
from schema import ErrorKind, MachineError

CLAIMED: Final = "machine-names"
"""Call metadata: host names and addresses of the machine, separated by commas."""

MAX_CLAIMED: Final = 64  # names; certificates have fewer


@dataclass(frozen=True, slots=True)
class PartCertificate:
    """Response of Certificate."""

    id: str
    tls_certificate: str
    tls_private_key: str = field(repr=False)


class PartCertificates(Service):
    """The calls of RobotService that issue certificates."""

    @allow(machine("id"))
    async def certificate(self, id: str) -> PartCertificate:  # noqa: A002 - field of the wire
        """Return a certificate of the machine's organization with its key, unchanged until its content must change.

        Only the part itself and owners may call this. PRECONDITION if clients reach the cloud without TLS: the key
        would be sent in plain text.
        """
        if not self.cloud.links.base.startswith("https://"):
            raise MachineError(
                "clients reach this cloud without TLS, so it issues no certificates: it would send keys in plain text",
                kind=ErrorKind.PRECONDITION,
                remedy="start machine-cloud with --tls, or let machines serve without TLS",
            )

        def names_and_stored(sql: Sql) -> tuple[str, tuple[str, ...], CertificatePair | None]:
            if self.author.type not in MACHINES:
                self.require(sql, Role.OWNER, ObjectKind.PART, id, home=True)
            part = machines.part(sql, id)
            owner = part.organization_id
            document = configurations.current(sql, id)[1]  # without fragments, which other organizations may change
            claimed = self._claimed(part)
            names = names_for(part.host_name, document, claimed, reserved=self._reserved())
            return owner, names, parts.stored_certificate(sql, id, owner, names, self.now())

        owner, names, certificate = await self.read(names_and_stored)
        if certificate is None:
            certificate = await self.write(lambda sql: parts.issued(sql, id, owner, names, self.now()))
        return PartCertificate(id, certificate.certificate, certificate.key)

    def _claimed(self, part: machines.PartRecord) -> list[str]:
        """Return the machine's own names: from this call, or else from its last report."""
        if self.request is not None and (claimed := self.request.metadata.get(CLAIMED)):
            return str(claimed).split(",")[:MAX_CLAIMED]
        reported = part.reported
        ips: Iterable[object] = reported.get("ips") or ()
        address = str(reported.get("address") or "").rpartition(":")[0]
        return [str(name) for name in (reported.get("host") or "", *ips, canonical(address))][:MAX_CLAIMED]

    def _reserved(self) -> frozenset[str]:
        """Return the reserved names: those of the cloud's port, unless the caller runs on the same computer.

        The name in the cloud's URL is always reserved if a proxy has its certificate: calls come from the proxy then.
        """
        host = urlsplit(self.cloud.links.base).hostname
        public = frozenset({canonical(host)}) if host else frozenset()
        if self.cloud.tls is None:
            return public
        names = frozenset(self.cloud.tls.names) | public
        peer = self.request.peer if self.request is not None else None
        if peer is None:
            return names
        here = peer.local or (isinstance(peer.address, tuple) and canonical(str(peer.address[0])) in names)
        return frozenset() if here else names
