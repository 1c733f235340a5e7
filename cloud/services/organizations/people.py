"""Published calls for members and invitations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cloud.domain.organizations import keys, tenants
from cloud.domain.organizations.keys import Grant
from cloud.domain.people import invites, people
from cloud.domain.people.invites import Invite
from cloud.domain.permissions.access import GRANT_KINDS, ObjectKind, Role, belongs, require
from cloud.domain.permissions.rules import ROLE_ANYWHERE, allow, operator, owner, signed_in
from cloud.services.common import messages as m
from cloud.services.common.base import Service, guarded
from cloud.services.organizations import invitation_messages as i
from cloud.services.organizations.keys import granted
from cloud.store.sql import Sql
from schema import MachineError

PATH: Final = "/invites/"


class People(Service):
    """Members of an organization and its invitations."""

    @allow(operator(ObjectKind.ORGANIZATION, "organization_id"))
    async def list_organization_members(self, organization_id: str) -> m.OrganizationMembers:
        """Return the people who have keys of the organization, and the open invitations."""

        def work(sql: Sql) -> m.OrganizationMembers:
            return m.OrganizationMembers(
                organization_id,
                [
                    m.OrganizationMember(member.id, [member.email], member.added)
                    for member in people.members(sql, organization_id)
                ],
                [_invite(invite) for invite in invites.open_invites(sql, organization_id, self.now())],
            )

        return await self.read(work)

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def create_organization_invite(
        self,
        organization_id: str,
        email: str,
        authorizations: Sequence[m.Authorization] = (),
        send_email_invite: bool | None = None,
    ) -> m.OrganizationInvite:
        """Invite a person with roles that the caller may grant; by default, as an owner of the organization.

        The link is mailed if there is a mail server, unless `send_email_invite` is False.
        """

        def work(sql: Sql) -> m.OrganizationInvite:
            grants = self._grants_to_give(sql, authorizations) or [Grant("owner", "organization", organization_id)]
            inviter = self.author.name, people.email_of(sql, self.author.name) or keys.key(sql, self.author.name).name
            mail = self.cloud.mails and send_email_invite is not False
            return _invite(invites.create(sql, organization_id, email, grants, inviter, self.now(), mail=mail))

        return await self.change(work)

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def update_organization_invite_authorizations(
        self,
        organization_id: str,
        email: str,
        add_authorizations: Sequence[m.Authorization] = (),
        remove_authorizations: Sequence[m.Authorization] = (),
    ) -> m.OrganizationInvite:
        """Change the roles of an invitation that has not been accepted."""

        def work(sql: Sql) -> m.OrganizationInvite:
            invite = invites.invite(sql, organization_id, email, self.now())
            removed = [granted(authorization) for authorization in remove_authorizations]
            invites.change(sql, invite, self._grants_to_give(sql, add_authorizations), removed)
            return _invite(invites.invite(sql, organization_id, email, self.now()))

        return await self.change(work)

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def resend_organization_invite(
        self, organization_id: str, email: str, send_email_invite: bool | None = None
    ) -> m.OrganizationInvite:
        """Extend an invitation by a week with a new link; the old link becomes invalid immediately."""

        def work(sql: Sql) -> m.OrganizationInvite:
            invite = invites.invite(sql, organization_id, email, self.now())
            invites.renew(sql, invite, self.now(), mail=self.cloud.mails and send_email_invite is not False)
            return _invite(invite)

        return await self.change(work)

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def delete_organization_invite(self, organization_id: str, email: str) -> None:
        """Withdraw an invitation; its link becomes invalid immediately."""
        await self.change(lambda sql: invites.withdraw(sql, invites.invite(sql, organization_id, email, self.now())))

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def delete_organization_member(self, organization_id: str, user_id: str) -> None:
        """Delete all keys of a person in the organization; they become invalid immediately."""
        await self.change(lambda sql: people.remove(sql, organization_id, user_id))

    # ---- search for people and organizations, limited to the caller's organization

    @allow(signed_in("members of the caller's organization"))
    async def get_user_id_by_email(self, email: str) -> str:
        """Return the id of a person in the caller's organization; NOT_FOUND for all others."""
        return await self.read(lambda sql: self._person(sql, email)[0])

    @allow(signed_in("the caller's organization"))
    async def list_organizations_by_user(self, user_id: str) -> list[m.OrgDetails]:
        """Return the caller's organization if the person is in it; NOT_FOUND for all others."""
        return await self.read(lambda sql: [_details(self._person(sql, user_id)[1])])

    @allow(ROLE_ANYWHERE)
    async def search_organizations(
        self,
        org_id: str | None = None,
        org_name: str | None = None,
        cid: str | None = None,
        public_namespace: str | None = None,
    ) -> list[m.OrgDetails]:
        """Return the caller's organization if it has this id and namespace and its name contains `org_name`."""

        def work(sql: Sql) -> list[m.OrgDetails]:
            subject = belongs(sql, self.author)
            organizations = [tenants.organization(sql, subject)] if subject else []
            return [
                _details(organization)
                for organization in organizations
                if (not org_id or organization.id == org_id)
                and (not org_name or org_name.casefold() in organization.name.casefold())
                and (not public_namespace or organization.namespace == public_namespace)
                and not cid
            ]

        return await self.read(work)

    def _person(self, sql: Sql, subject: str) -> tuple[str, tenants.Organization]:
        """Find a person by id or email: the caller, or a member of an organization whose members the caller may see."""
        organization = belongs(sql, self.author)
        if not organization:
            raise tenants.missing("user", subject)
        try:
            member = people.member(sql, organization, subject)
            if self.author.name not in member.keys:
                require(sql, self.author, Role.OPERATOR, ObjectKind.ORGANIZATION, organization)
        except MachineError:
            raise tenants.missing("user", subject) from None
        return member.id, tenants.organization(sql, organization)

    def _grants_to_give(self, sql: Sql, authorizations: Sequence[m.Authorization]) -> list[Grant]:
        """Return the requested grants; the caller must be an owner at each place."""
        grants = [granted(authorization) for authorization in authorizations]
        for grant in grants:
            self.require(sql, Role.OWNER, GRANT_KINDS[grant.kind], grant.subject)
        return grants


@guarded
class Invitations(Service):
    """machine.cloud.v1.InvitationService: invitations beyond the published API, for commands and pages."""

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def list_invites(self, organization_id: str) -> i.ListInvitesResponse:
        """Return the open invitations with the state of their mails, and whether the cloud has a mail server."""
        opened = await self.read(lambda sql: invites.open_invites(sql, organization_id, self.now()))
        return i.ListInvitesResponse([_open_invite(invite) for invite in opened], self.cloud.mails)

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def create_invite_link(self, organization_id: str, email: str) -> str:
        """Create a link that accepts an invitation, without mailing it; an earlier link becomes invalid.

        The link cannot be read again later.
        """

        def work(sql: Sql) -> str:
            invite = invites.invite(sql, organization_id, email, self.now())
            invites.renew(sql, invite, self.now(), mail=False)
            return invites.link(sql, invite)

        secret = await self.change(work)
        return link_of(self.cloud.links.base, secret)


def link_of(base: str, secret: str) -> str:
    """Return the URL of the page that accepts an invitation."""
    return f"{base}{PATH}{secret}"


def _invite(invite: Invite) -> m.OrganizationInvite:
    return m.OrganizationInvite(
        invite.organization_id,
        invite.email,
        invite.created,
        [
            m.Authorization(
                authorization_type="role",
                authorization_id=f"{grant.kind}_{grant.role}",
                resource_type=grant.kind,
                resource_id=grant.subject,
                organization_id=invite.organization_id,
            )
            for grant in invite.grants
        ],
    )


def _open_invite(invite: Invite) -> i.Invite:
    return i.Invite(
        invite.organization_id,
        invite.email,
        invite.created,
        invite.expires,
        invite.inviter_name,
        [i.Grant(grant.role, grant.kind, grant.subject) for grant in invite.grants],
        invite.mail,
        invite.error,
    )


def _details(organization: tenants.Organization) -> m.OrgDetails:
    return m.OrgDetails(organization.id, organization.name, organization.namespace or None)
