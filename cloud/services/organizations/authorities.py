"""Certificate authorities that clients of the cloud must trust."""

from __future__ import annotations

from cloud.domain.certificates.authorities import PORT, current, signing_authority
from cloud.domain.certificates.bundle import bundle
from cloud.domain.permissions.access import belongs
from cloud.domain.permissions.rules import allow, public
from cloud.services.common.base import Service, guarded
from cloud.store.sql import Sql


@guarded
class AuthorityService(Service):
    """Trusted roots of the cloud. Not published; used by the page /ca.pem."""

    @allow(public("certificates are public"))
    async def list_authorities(self) -> str:
        """Return roots (PEM): of the cloud's port if it uses its own authority, and of the organizations that the
        caller sees.

        Callers without a key see no organization. Roots are created when they are first requested.
        """
        tls = self.cloud.tls
        scopes = [PORT] if tls is not None and tls.own else []
        owner = await self.read(lambda sql: belongs(sql, self.author))
        scopes += [owner] if owner else []

        def missing(sql: Sql) -> bool:
            return any(signing_authority(sql, scope) is None for scope in scopes)

        def create_missing(sql: Sql) -> None:
            for scope in scopes:
                current(sql, scope, self.now())

        if await self.read(missing):
            await self.write(create_missing)
        return await self.read(lambda sql: bundle(sql, scopes, self.now()))
