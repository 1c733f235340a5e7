"""Keys and members, and what they may do: `/keys`. A key itself is shown once, when it is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from cloud.access import Of, Role, place_of, role_at
from cloud.fleet import fleet, locations
from cloud.invites import Invite
from cloud.services import messages as m
from cloud.services.app import AppService
from cloud.services.base import Cloud
from cloud.services.people import Invitations
from cloud.store.sql import Sql
from cloud.web.site import author_of, fields, render, see, status_of, text_of
from schema.errors import ErrorKind, MachineError

ROLES: Final = (("operator", "Operator: view and control machines"), ("owner", "Owner: change everything"))
MAILS: Final = {"none": "", "waiting": "being mailed", "sent": "mailed", "failed": "not mailed"}
KINDS: Final = {"organization": "everything", "location": "location", "robot": "machine"}


@dataclass(frozen=True, slots=True)
class Grant:
    """A role of a key, and where."""

    role: str
    kind: str
    subject: str
    place: str  # in words


@dataclass(frozen=True, slots=True)
class Key:
    """A key in the list; `own` is the one that asks."""

    id: str
    name: str
    created: datetime | None
    grants: tuple[Grant, ...]
    own: bool


@dataclass(frozen=True, slots=True)
class Member:
    """A person with keys."""

    organization: str
    id: str
    email: str
    added: datetime


@dataclass(frozen=True, slots=True)
class Invited:
    """Somebody who has not accepted yet; `mail` tells of the message, empty if there is none."""

    organization: str
    email: str
    inviter: str
    expires: datetime
    roles: tuple[str, ...]
    mail: str


def routes(cloud: Cloud) -> list[BaseRoute]:
    """The list of keys, and what is done with them."""
    pages = KeyPages(cloud)
    return [
        Route("/keys", pages.index, methods=["GET"]),
        Route("/keys", pages.create, methods=["POST"]),
        Route("/keys/{id}/{action}", pages.act, methods=["POST"]),
    ]


class KeyPages:
    """The endpoints."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def index(self, request: Request) -> Response:
        """`GET /keys`: for owners of the organization."""
        return await self.shown(request)

    async def shown(self, request: Request, error: MachineError | None = None, at: str = "new") -> Response:
        """The page, with what went wrong at the form `at`."""
        author = author_of(request)
        service = AppService(self._cloud, author)
        organizations = await service.list_organizations()
        places = await self._places(request, organizations)
        keys: list[Key] = []
        members: list[Member] = []
        invited: list[Invited] = []
        try:
            for one in organizations:
                keys += [_key(found, places, author.name) for found in await service.list_keys(one.id)]
                listed = await service.list_organization_members(one.id)
                members += [Member(one.id, each.user_id, each.emails[0], each.date_added) for each in listed.members]
                open_ones = await Invitations(self._cloud, author).list_invites(one.id)
                invited += [_invited(each, places) for each in open_ones]
            refused = ""
        except MachineError as refusal:
            if refusal.kind not in (ErrorKind.PERMISSION, ErrorKind.NOT_FOUND):  # a role somewhere in it
                raise
            refused = "Only owners of the whole organization see its keys."
        options = [(f"{kind}/{subject}", text) for (kind, subject), text in places.items()]
        return render(
            request,
            "keys.html",
            status_of(error) if error else 403 if refused else 200,
            organizations=[one.name for one in organizations],
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
        """Where a role may be, in words: everything, each location, each machine."""
        author = author_of(request)

        def work(sql: Sql) -> dict[tuple[str, str], str]:
            found = {
                ("organization", one.id): f"everything of {one.name}"
                for one in organizations
                if role_at(sql, author, place_of(sql, Of.ORGANIZATION, one.id)) >= Role.OWNER
            }
            found |= {
                ("location", one.id): f"location {one.path}"
                for one in locations(sql, author).values()
                if one.role is Role.OWNER
            }
            owned = [one for one in fleet(sql, author) if one.role is Role.OWNER]
            found |= {("robot", one.id): f"machine {one.name} ({one.location.path})" for one in owned}
            return found

        return await self._cloud.store.read(work)

    async def granted(self, request: Request, form: FormData, key: str = "") -> m.Authorization:
        """What the fields `role` and `place` of a form give; the place by its id, or as the page writes it. INVALID."""
        place = text_of(form, "place")
        if place and place.partition("/")[0] not in KINDS:
            organizations = await AppService(self._cloud, author_of(request)).list_organizations()
            places = await self._places(request, organizations)
            found = [f"{kind}/{subject}" for (kind, subject), text in places.items() if text == place]
            if len(found) != 1:
                raise MachineError(
                    f"there is {'more than one' if found else 'no'} place called {place[:100]!r}",
                    kind=ErrorKind.INVALID,
                    remedy="choose one that the field offers",
                )
            (place,) = found
        return authorization(text_of(form, "role"), place, key)

    async def create(self, request: Request) -> Response:
        """`POST /keys`, fields `name`, `role`, `place`."""
        form = await fields(request)
        service = AppService(self._cloud, author_of(request))
        try:
            grant = await self.granted(request, form)
            made = await service.create_key([grant], text_of(form, "name"))
        except MachineError as error:
            return await self.shown(request, error)
        return _shown(request, made, text_of(form, "name"), new=True)

    async def act(self, request: Request) -> Response:
        """`POST /keys/<id>/rename|rotate|delete|add-role|remove-role`."""
        form, subject, action = await fields(request), request.path_params["id"], request.path_params["action"]
        service = AppService(self._cloud, author_of(request))
        try:
            if action == "rename":
                await service.rename_key(subject, text_of(form, "name"))
            elif action == "rotate":
                return _shown(request, await service.rotate_key(subject), "", new=False)
            elif action == "delete":
                await service.delete_key(subject)
            elif action in ("add-role", "remove-role"):
                grant = await self.granted(request, form, subject)
                await (service.add_role(grant) if action == "add-role" else service.remove_role(grant))
            else:
                raise MachineError(f"a key cannot be {action[:40]!r}", kind=ErrorKind.NOT_FOUND)
        except MachineError as error:
            return await self.shown(request, error, subject)
        return see("/keys")


def _shown(request: Request, made: m.NewKey, name: str, *, new: bool) -> Response:
    """The only page that ever shows a key."""
    return render(request, "key_made.html", id=made.id, key=made.key, name=name, new=new)


def authorization(role: str, place: str, key: str = "") -> m.Authorization:
    """What the fields `role` and `place` of a form give; INVALID."""
    kind, _, subject = place.partition("/")
    if not subject:
        raise MachineError("no place was chosen", kind=ErrorKind.INVALID, remedy="choose where the role holds")
    return m.Authorization("role", f"{kind}_{role}", kind, subject, key)


def _invited(one: Invite, places: Mapping[tuple[str, str], str]) -> Invited:
    roles = tuple(f"{each.role} of {_place(each.kind, each.subject, places)}" for each in one.grants)
    why = f": {one.error}" if one.error else ""
    return Invited(one.organization_id, one.email, one.inviter_name, one.expires, roles, MAILS[one.mail] + why)


def _place(kind: str, subject: str, places: Mapping[tuple[str, str], str]) -> str:
    return places.get((kind, subject), f"{KINDS[kind]} {subject} (deleted)")


def _key(found: m.APIKeyWithAuthorizations, places: Mapping[tuple[str, str], str], own: str) -> Key:
    grants = tuple(
        Grant(
            one.authorization_id.rpartition("_")[2],
            one.resource_type,
            one.resource_id,
            _place(one.resource_type, one.resource_id, places),
        )
        for one in found.authorizations
    )
    key = found.api_key
    return Key(key.id, key.name, key.created_on, grants, key.id == own)
