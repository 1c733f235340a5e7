"""Audit log of the caller's organization, for the page of changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cloud.domain.organizations import keys
from cloud.domain.permissions import audit
from cloud.domain.permissions.access import ObjectKind, Role
from cloud.domain.permissions.audit import AuditQuery, AuditRecord
from cloud.domain.permissions.rules import allow, signed_in
from cloud.services.common.base import Service, guarded
from cloud.store.sql import Sql
from schema import ErrorKind, MachineError


@dataclass(frozen=True, slots=True)
class AuditPage:
    """A page of the audit log, with the actions and keys by which it can be filtered.

    `places` has the names of what the roles in its entries apply to, by kind and id.
    """

    entries: Sequence[AuditRecord]
    actions: Sequence[str]
    keys: Sequence[tuple[str, str]]  # id and name
    places: Mapping[tuple[str, str], str]


@guarded
class ChangeService(Service):
    """A request of the page of changes."""

    @allow(signed_in("changes in organizations that the caller owns"))
    async def changes(self, query: AuditQuery) -> AuditPage:
        """Return changes in the caller's organization; PERMISSION unless the caller owns all of it."""

        def work(sql: Sql) -> AuditPage:
            owner = audit.organization_of(sql, self.author)
            try:
                self.require(sql, Role.OWNER, ObjectKind.ORGANIZATION, owner)
            except MachineError:
                raise MachineError(
                    "only owners of the whole organization may read the audit log",
                    kind=ErrorKind.PERMISSION,
                    remedy="log in with an owner's key",
                ) from None
            names = [(key.id, key.name) for key in keys.keys(sql, owner)]
            entries = audit.entries(sql, owner, query)
            return AuditPage(entries, audit.actions(sql, owner), names, audit.places(sql, owner, entries))

        return await self.read(work)
