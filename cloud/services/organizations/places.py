"""Published calls for shared locations and their secrets."""

from __future__ import annotations

from cloud.domain.organizations import sharing
from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.rules import allow, home_owner
from cloud.services.common import messages as m
from cloud.services.common.base import Service
from cloud.store.sql import Sql


class PlaceService(Service):
    """Sharing and secrets of locations: for owners in the organization of the location."""

    @allow(home_owner(ObjectKind.LOCATION, "location_id"))
    async def share_location(self, location_id: str, organization_id: str) -> None:
        """Give another organization access to a location: roles of its keys then apply there."""
        await self.change(lambda sql: sharing.share(sql, location_id, organization_id, self.now()))

    @allow(home_owner(ObjectKind.LOCATION, "location_id"))
    async def unshare_location(self, location_id: str, organization_id: str) -> None:
        """Revoke access to a location immediately."""
        await self.change(lambda sql: sharing.unshare(sql, location_id, organization_id))

    @allow(home_owner(ObjectKind.LOCATION, "location_id"))
    async def location_auth(self, location_id: str) -> m.LocationAuth:
        """Return the secrets of a location."""
        return await self.read(lambda sql: _auth(sql, location_id))

    @allow(home_owner(ObjectKind.LOCATION, "location_id"))
    async def create_location_secret(self, location_id: str) -> m.LocationAuth:
        """Create another secret for parts of the location; older ones stay valid."""

        def work(sql: Sql) -> m.LocationAuth:
            sharing.create_secret(sql, location_id, self.now())
            return _auth(sql, location_id)

        return await self.change(work)

    @allow(home_owner(ObjectKind.LOCATION, "location_id"))
    async def delete_location_secret(self, location_id: str, secret_id: str) -> None:
        """Delete a secret, which becomes invalid immediately."""
        await self.change(lambda sql: sharing.delete_secret(sql, location_id, secret_id))


def _auth(sql: Sql, location_id: str) -> m.LocationAuth:
    secrets = [m.SharedSecret(*secret) for secret in sharing.secrets_of(sql, location_id)]
    return m.LocationAuth(secrets[0].secret if secrets else "", location_id, secrets)
