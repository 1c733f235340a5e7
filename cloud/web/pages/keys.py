"""`/keys`: keys, members, and their roles. A key itself is shown only once, when it is created."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from cloud.domain.permissions.rules import OF_FORM, AccessRule, signed_in
from cloud.services.app import AppService
from cloud.services.common import messages as m
from cloud.services.common.base import Cloud
from cloud.services.organizations.invitation_messages import Invite
from cloud.services.organizations.people import Invitations
from cloud.services.organizations.roles import RoleService
from cloud.web.common.site import author_of, fields, redirect, render, status_of, text_of
from cloud.web.views.setup import address_of
from schema import ErrorKind, MachineError

ROLES: Final = (("operator", "Operator: controls machines"), ("owner", "Owner: changes everything"))
MAILS: Final = {"none": "", "waiting": "being mailed", "sent": "mailed", "failed": "not mailed"}
KINDS: Final = {"organization": "everything", "location": "location", "robot": "machine"}


@dataclass(frozen=True, slots=True)
class KeyRole:
    """A role of a key, and where it applies."""

    role: str
    kind: str
    subject: str
    place: str  # as text


@dataclass(frozen=True, slots=True)
class ListedKey:
    """A key in the list; `own` marks the caller's key."""

    id: str
    name: str
    created: datetime | None
    grants: tuple[KeyRole, ...]
    own: bool


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """A person with keys."""

    organization: str
    id: str
    email: str
    added: datetime


@dataclass(frozen=True, slots=True)
class Invited:
    """A person with an open invitation; `mail` is the state of its mail, empty if there is none."""

    organization: str
    email: str
    inviter: str
    expires: datetime
    roles: tuple[str, ...]
    mail: str


RULES: Final[Mapping[str, AccessRule]] = {
    "GET /keys": signed_in("keys of the places that the caller owns"),
    "POST /keys": OF_FORM,
    "POST /keys/{id}/{action}": OF_FORM,
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of the list and its forms."""
    pages = KeyPages(cloud)
    return [
        Route("/keys", pages.index, methods=["GET"]),
        Route("/keys", pages.create, methods=["POST"]),
        Route("/keys/{id}/{action}", pages.act, methods=["POST"]),
    ]


class KeyPages:
    """Endpoints of the keys page."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def index(self, request: Request) -> Response:
        """`GET /keys`, for owners of the organization."""
        return await self.render_page(request)

    async def render_page(self, request: Request, error: MachineError | None = None, at: str = "new") -> Response:
        """Render the page, with the error of the form `at`."""
        author = author_of(request)
        service = AppService(self._cloud, author)
        organizations = await service.list_organizations()
        places = await self._places(request, organizations)
        keys: list[ListedKey] = []
        members: list[KeyHolder] = []
        invited: list[Invited] = []
        try:
            for organization in organizations:
                id_ = organization.id
                keys += [_key(record, places, author.name) for record in await service.list_keys(id_)]
                people = (await service.list_organization_members(id_)).members
                members += [KeyHolder(id_, person.user_id, person.emails[0], person.date_added) for person in people]
                invitations = (await Invitations(self._cloud, author).list_invites(id_)).invites
                invited += [_invited(invitation, places) for invitation in invitations]
            refused = ""
        except MachineError as refusal:
            if refusal.kind not in (ErrorKind.PERMISSION, ErrorKind.NOT_FOUND):  # a role at a part of it
                raise
            refused = "Only owners of the whole organization see its keys."
        options = [(f"{kind}/{subject}", text) for (kind, subject), text in places.items()]
        return render(
            request,
            "keys.html",
            status_of(error) if error else 403 if refused else 200,
            organizations=[organization.name for organization in organizations],
            organization_id=organizations[0].id if organizations else "",
            keys=keys,
            members=members,
            invited=invited,
            mails=self._cloud.mails,
            refused=refused,
            roles=ROLES,
            places=options,
            error=error,
            at=at,
        )

    async def _places(self, request: Request, organizations: Sequence[m.Organization]) -> Mapping[tuple[str, str], str]:
        """Return the places where the caller may grant roles, with display names."""
        return await RoleService(self._cloud, author_of(request)).places(organizations)

    async def parse_grant(self, request: Request, form: FormData, key: str = "") -> m.Authorization:
        """Parse the fields `role` and `place` of a form; the place is given by id or name. INVALID if wrong."""
        place = text_of(form, "place")
        if place and place.partition("/")[0] not in KINDS:
            organizations = await AppService(self._cloud, author_of(request)).list_organizations()
            places = await self._places(request, organizations)
            matches = [f"{kind}/{subject}" for (kind, subject), text in places.items() if text == place]
            if len(matches) != 1:
                raise MachineError(
                    f"there is {'more than one' if matches else 'no'} place called {place[:100]!r}",
                    kind=ErrorKind.INVALID,
                    remedy="choose one of those that the field suggests",
                )
            (place,) = matches
        return authorization(text_of(form, "role"), place, key)

    async def create(self, request: Request) -> Response:
        """`POST /keys`, with fields `name`, `role`, `place`."""
        form = await fields(request)
        service = AppService(self._cloud, author_of(request))
        try:
            grant = await self.parse_grant(request, form)
            new_key = await service.create_key([grant], text_of(form, "name"))
        except MachineError as error:
            return await self.render_page(request, error)
        places = await self._places(request, await service.list_organizations())
        role = (
            f"{grant.authorization_id.rpartition('_')[2]} of {_place(grant.resource_type, grant.resource_id, places)}"
        )
        return _new_key_page(request, new_key, text_of(form, "name"), role)

    async def act(self, request: Request) -> Response:
        """`POST /keys/<id>/rename|rotate|delete|add-role|remove-role`."""
        form, subject, action = await fields(request), request.path_params["id"], request.path_params["action"]
        service = AppService(self._cloud, author_of(request))
        try:
            if action == "rename":
                await service.rename_key(subject, text_of(form, "name"))
            elif action == "rotate":
                return _new_key_page(request, await service.rotate_key(subject))
            elif action == "delete":
                await service.delete_key(subject)
            elif action in ("add-role", "remove-role"):
                grant = await self.parse_grant(request, form, subject)
                await (service.add_role(grant) if action == "add-role" else service.remove_role(grant))
            else:
                raise MachineError(f"there is no action {action[:40]!r} for keys", kind=ErrorKind.NOT_FOUND)
        except MachineError as error:
            return await self.render_page(request, error, subject)
        return redirect("/keys")


def _new_key_page(request: Request, new_key: m.NewKey, name: str = "", role: str = "") -> Response:
    """Render the page with a key, the only one that shows it; `name` and `role` are empty if it was rotated."""
    login = f"machine cloud login {shlex.quote(address_of(request))} --key-id {shlex.quote(new_key.id)}"
    return render(request, "new_key.html", id=new_key.id, key=new_key.key, name=name, role=role, login=login)


def authorization(role: str, place: str, key: str = "") -> m.Authorization:
    """Parse the fields `role` and `place` of a form; INVALID without a place."""
    kind, _, subject = place.partition("/")
    if not subject:
        raise MachineError("no place was chosen", kind=ErrorKind.INVALID, remedy="choose where the role applies")
    return m.Authorization("role", f"{kind}_{role}", kind, subject, key)


def _invited(invite: Invite, places: Mapping[tuple[str, str], str]) -> Invited:
    roles = tuple(f"{grant.role} of {_place(grant.kind, grant.subject, places)}" for grant in invite.grants)
    mail = MAILS[invite.mail] + (f": {invite.error}" if invite.error else "")
    return Invited(invite.organization_id, invite.email, invite.inviter_name, invite.expires, roles, mail)


def _place(kind: str, subject: str, places: Mapping[tuple[str, str], str]) -> str:
    return places.get((kind, subject), f"{KINDS[kind]} {subject} (deleted)")


def _key(record: m.APIKeyWithAuthorizations, places: Mapping[tuple[str, str], str], own: str) -> ListedKey:
    grants = tuple(
        KeyRole(
            entry.authorization_id.rpartition("_")[2],
            entry.resource_type,
            entry.resource_id,
            _place(entry.resource_type, entry.resource_id, places),
        )
        for entry in record.authorizations
    )
    key = record.api_key
    return ListedKey(key.id, key.name, key.created_on, grants, key.id == own)
