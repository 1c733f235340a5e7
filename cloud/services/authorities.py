"""What a client of this cloud should trust."""

from __future__ import annotations

from cloud import permissions
from cloud.certificates.authorities import PORT, current, known
from cloud.certificates.bundle import bundle
from cloud.services.base import Service, guarded
from cloud.services.organizations import Organizations
from cloud.store.sql import Sql


@guarded(permissions.AUTHORITIES)
class AuthorityService(Service):
    """The roots of the cloud; not published, used by the page /ca.pem."""

    async def list_authorities(self) -> str:
        """Roots (PEM): of the cloud's port if they are its own, and of machines in organizations that the caller sees.

        Whoever shows no key sees no organization. Roots are made when they are asked for first.
        """
        tls = self.cloud.tls
        scopes = [PORT] if tls is not None and tls.own else []
        scopes += [one.id for one in await Organizations(self.cloud, self.author).list_organizations()]

        def missing(sql: Sql) -> bool:
            return any(known(sql, scope) is None for scope in scopes)

        def make(sql: Sql) -> None:
            for scope in scopes:
                current(sql, scope, self.now())

        if await self.read(missing):
            await self.write(make)
        return await self.read(lambda sql: bundle(sql, scopes, self.now()))
