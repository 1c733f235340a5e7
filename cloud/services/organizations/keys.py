"""Published calls for API keys and roles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NoReturn, cast

from cloud.domain.organizations import keys
from cloud.domain.organizations.keys import Grant, Kind
from cloud.domain.organizations.tenants import missing
from cloud.domain.permissions.access import GRANT_KINDS, ObjectKind, Role, place_of, role_at
from cloud.domain.permissions.rules import GIVES, allow, owner, signed_in
from cloud.services.common import messages as m
from cloud.services.common.base import Service
from cloud.store.sql import Sql
from cloud.values.names import MAX_NAME
from schema import ErrorKind, MachineError

PERMISSIONS: Final = {
    "read": Role.OPERATOR,
    "control": Role.OPERATOR,
    "write": Role.OWNER,
    "configure": Role.OWNER,
    "delete": Role.OWNER,
    "admin": Role.OWNER,
}
"""Required role by permission, keyed by the last or first word of its name: `control_robot` or `robot_control`."""


COPY: Final = " (copy)"


class Keys(Service):
    """API keys and their roles."""

    @allow(GIVES)
    async def create_key(self, authorizations: Sequence[m.Authorization], name: str = "") -> m.NewKey:
        """Create a key with roles that the caller may grant. Its secret is returned only once."""

        def work(sql: Sql) -> tuple[str, str]:
            grants = [granted(authorization) for authorization in authorizations]
            for grant in grants:
                self.require(sql, Role.OWNER, GRANT_KINDS[grant.kind], grant.subject)
            return keys.create_key(sql, keys.organization_of(sql, self.author.name), name, grants, self.now())

        return m.NewKey(*await self.change(work)) if authorizations else _no_role()

    @allow(owner(ObjectKind.KEY, "id"))
    async def create_key_from_existing_key_authorizations(self, id: str) -> m.NewKey:  # noqa: A002 - field of the wire
        """Create a key with the roles of another one."""

        def work(sql: Sql) -> tuple[str, str]:
            original = keys.key(sql, id)
            name = f"{original.name[: MAX_NAME - len(COPY)]}{COPY}"
            return keys.create_key(sql, original.organization_id, name, original.grants, self.now(), original.person_id)

        return m.NewKey(*await self.change(work))

    @allow(owner(ObjectKind.ORGANIZATION, "org_id"))
    async def list_keys(self, org_id: str) -> list[m.APIKeyWithAuthorizations]:
        """Return the keys of an organization."""
        return await self.read(lambda sql: [_key(key) for key in keys.keys(sql, org_id)])

    @allow(owner(ObjectKind.ROBOT, "robot_id"))
    async def get_robot_api_keys(self, robot_id: str) -> list[m.APIKeyWithAuthorizations]:
        """Return the keys of the caller's organization that have a role at this machine itself."""

        def work(sql: Sql) -> list[m.APIKeyWithAuthorizations]:
            owner = keys.organization_of(sql, self.author.name)
            return [_key(key) for key in keys.keys_at(sql, "robot", robot_id) if key.organization_id == owner]

        return await self.read(work)

    @allow(owner(ObjectKind.KEY, "id"))
    async def rename_key(self, id: str, name: str) -> m.RenamedKey:  # noqa: A002 - field of the wire
        """Rename a key."""

        def work(sql: Sql) -> m.RenamedKey:
            keys.rename_key(sql, id, name)
            return m.RenamedKey(id, keys.key(sql, id).name)

        return await self.change(work)

    @allow(owner(ObjectKind.KEY, "id"))
    async def rotate_key(self, id: str) -> m.NewKey:  # noqa: A002 - field of the wire
        """Replace the secret of a key; the old one becomes invalid immediately."""
        key = await self.change(lambda sql: keys.rotate_key(sql, id))
        return m.NewKey(id, key)

    @allow(owner(ObjectKind.KEY, "id"))
    async def delete_key(self, id: str) -> None:  # noqa: A002 - field of the wire
        """Delete a key, which becomes invalid immediately."""
        await self.change(lambda sql: keys.delete_key(sql, id))

    # ---- roles

    @allow(GIVES)
    async def add_role(self, authorization: m.Authorization) -> None:
        """Add a role to a key."""

        def work(sql: Sql) -> None:
            grant = self._grantable(sql, authorization)
            keys.add_grant(sql, authorization.identity_id, grant)

        await self.change(work)

    @allow(GIVES)
    async def remove_role(self, authorization: m.Authorization) -> None:
        """Remove a role from a key."""

        def work(sql: Sql) -> None:
            grant = self._grantable(sql, authorization)
            keys.remove_grant(sql, authorization.identity_id, grant)

        await self.change(work)

    @allow(GIVES)
    async def change_role(self, old_authorization: m.Authorization, new_authorization: m.Authorization) -> None:
        """Replace a role of a key with another one."""

        def work(sql: Sql) -> None:
            old, new = self._grantable(sql, old_authorization), self._grantable(sql, new_authorization)
            if old_authorization.identity_id != new_authorization.identity_id:
                raise MachineError(
                    "the authorizations are of different keys",
                    kind=ErrorKind.INVALID,
                    remedy="give the same identity_id in both",
                )
            if old not in keys.grants_of(sql, new_authorization.identity_id):
                raise MachineError(
                    "the key does not have the role to replace",
                    kind=ErrorKind.NOT_FOUND,
                    remedy="list_keys shows the roles that it has",
                )
            keys.add_grant(sql, new_authorization.identity_id, new)
            if (old.kind, old.subject) != (new.kind, new.subject):
                keys.remove_grant(sql, new_authorization.identity_id, old)

        await self.change(work)

    def _grantable(self, sql: Sql, authorization: m.Authorization) -> Grant:
        """Return the requested grant if the caller may give it to that key."""
        grant = granted(authorization)
        self.require(sql, Role.OWNER, GRANT_KINDS[grant.kind], grant.subject)
        own = keys.organization_of(sql, self.author.name)
        if place_of(sql, ObjectKind.KEY, authorization.identity_id).organization != own:
            raise missing("key", authorization.identity_id)
        return grant

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def list_authorizations(
        self, organization_id: str, resource_ids: Sequence[str] = ()
    ) -> list[m.Authorization]:
        """Return the roles of all keys, or only those at the given resources."""

        def work(sql: Sql) -> list[m.Authorization]:
            return [
                m.Authorization(
                    authorization_type="role",
                    authorization_id=f"{grant.kind}_{grant.role}",
                    resource_type=grant.kind,
                    resource_id=grant.subject,
                    identity_id=key.id,
                    organization_id=organization_id,
                    identity_type="api-key",
                )
                for key in keys.keys(sql, organization_id)
                for grant in key.grants
                if not resource_ids or grant.subject in resource_ids
            ]

        return await self.read(work)

    @allow(signed_in("what the caller may do"))
    async def check_permissions(self, permissions: Sequence[m.AuthorizedPermissions]) -> list[m.AuthorizedPermissions]:
        """Return which of the permissions the caller has; unknown ones are never granted. INVALID if empty."""
        if not permissions:
            raise MachineError("the call names no permission", kind=ErrorKind.INVALID, remedy="pass at least one")

        def work(sql: Sql) -> list[m.AuthorizedPermissions]:
            granted_permissions = []
            for requested in permissions:
                try:
                    place = place_of(sql, _of(requested.resource_type), requested.resource_id)
                except MachineError:
                    continue
                role = role_at(sql, self.author, place)
                permitted = [permission for permission in requested.permissions if role >= _required_role(permission)]
                if permitted:
                    granted_permissions.append(
                        m.AuthorizedPermissions(requested.resource_type, requested.resource_id, permitted)
                    )
            return granted_permissions

        return await self.read(work)


def _required_role(permission: str) -> int:
    words = permission.lower().split("_")
    return next((PERMISSIONS[word] for word in (words[-1], words[0]) if word in PERMISSIONS), Role.OWNER + 1)


def _of(kind: str) -> ObjectKind:
    if kind not in GRANT_KINDS:
        raise MachineError(
            f"{kind!r} is not a valid type of resource",
            kind=ErrorKind.INVALID,
            remedy=f"use one of {', '.join(GRANT_KINDS)}",
        )
    return GRANT_KINDS[kind]


def granted(authorization: m.Authorization) -> Grant:
    """Parse an authorization of a request: `organization_owner` at an organization's id."""
    kind, _, role = authorization.authorization_id.rpartition("_")
    kind = kind or authorization.resource_type
    if authorization.resource_type and authorization.resource_type != kind:
        raise MachineError(
            f"{authorization.authorization_id!r} is not a role at a {authorization.resource_type}",
            kind=ErrorKind.INVALID,
            remedy=f"give a role that begins with {authorization.resource_type}_, or the resource_type {kind}",
        )
    _of(kind)
    if role not in keys.ROLES:
        raise MachineError(
            f"{role!r} is not a valid role", kind=ErrorKind.INVALID, remedy=f"use {kind}_{' or '.join(keys.ROLES)}"
        )
    return Grant(role, cast("Kind", kind), authorization.resource_id)


def _no_role() -> NoReturn:
    raise MachineError("a key needs a role", kind=ErrorKind.INVALID, remedy="pass at least one authorization")


def _key(key: keys.KeyRecord) -> m.APIKeyWithAuthorizations:
    return m.APIKeyWithAuthorizations(
        m.APIKey(key.id, "", key.name, key.created),
        [
            m.AuthorizationDetails("role", f"{grant.kind}_{grant.role}", grant.kind, grant.subject, key.organization_id)
            for grant in key.grants
        ],
    )
