"""Sharing of locations, and their secrets, on the wire."""

from __future__ import annotations

from cloud import sharing
from cloud.services import messages as m
from cloud.services.base import Service
from cloud.store.sql import Sql


class Places(Service):
    """What decides over a location: for owners in the organization that it belongs to."""

    async def share_location(self, location_id: str, organization_id: str) -> None:
        """Give another organization access: its keys have their roles there too."""
        await self.write(lambda sql: sharing.share(sql, location_id, organization_id, self.now()))

    async def unshare_location(self, location_id: str, organization_id: str) -> None:
        """Take the access away at once."""
        await self.write(lambda sql: sharing.unshare(sql, location_id, organization_id))

    async def location_auth(self, location_id: str) -> m.LocationAuth:
        """The secrets of a location."""
        return await self.read(lambda sql: _auth(sql, location_id))

    async def create_location_secret(self, location_id: str) -> m.LocationAuth:
        """One more secret with which parts in the location may sign in; the older ones stay valid."""

        def work(sql: Sql) -> m.LocationAuth:
            sharing.create_secret(sql, location_id, self.now())
            return _auth(sql, location_id)

        return await self.write(work)

    async def delete_location_secret(self, location_id: str, secret_id: str) -> None:
        """Void a secret at once."""
        await self.write(lambda sql: sharing.delete_secret(sql, location_id, secret_id))


def _auth(sql: Sql, location_id: str) -> m.LocationAuth:
    secrets = [m.SharedSecret(*one) for one in sharing.secrets_of(sql, location_id)]
    return m.LocationAuth(secrets[0].secret if secrets else "", location_id, secrets)
