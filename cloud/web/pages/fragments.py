"""Fragments: list, editor with review, tags, users, history."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from cloud.domain.organizations.tenants import missing
from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.rules import OF_FORM, ROLE_ANYWHERE, AccessRule, operator, owner
from cloud.editing.comments import without_comments
from cloud.editing.documents import outline, written
from cloud.editing.edits import rewritten
from cloud.editing.merging import merged, same
from cloud.editing.review import review
from cloud.services.app import AppService
from cloud.services.common.base import Cloud
from cloud.services.configurations.editing import Editor, FragmentEditing, Save
from cloud.services.configurations.fragment_messages import Visibility
from cloud.services.rollouts.rollouts import RolloutService
from cloud.values.author import Author
from cloud.values.limits import DOCUMENT_FORM
from cloud.web.common.site import author_of, fields, redirect, render, text_of
from cloud.web.views import editor
from cloud.web.views.editor import Merge
from cloud.web.views.revisions import RevisedDocument, history_page, revert, review_page
from schema import ErrorKind, MachineError

PAGE: Final = 20  # revisions per page
SECTION: Final = ("Fragments", "/fragments")
VISIBILITIES: Final = (
    ("private", "this organization"),
    ("unlisted", "anyone who knows its id"),
    ("public", "every organization"),
)
_WORDS: Final = {
    "private": Visibility.PRIVATE,
    "unlisted": Visibility.PUBLIC_UNLISTED,
    "public": Visibility.PUBLIC,
}
_SHOWN: Final = {_WORDS[word]: text for word, text in VISIBILITIES}


_FRAGMENT: Final = operator(ObjectKind.FRAGMENT, "fragment")

RULES: Final[Mapping[str, AccessRule]] = {
    "GET /fragments": ROLE_ANYWHERE,
    "POST /fragments": OF_FORM,
    "GET /fragments/{fragment}": _FRAGMENT,
    "POST /fragments/{fragment}": _FRAGMENT | "changes: owners",
    "POST /fragments/{fragment}/check": _FRAGMENT,
    "POST /fragments/{fragment}/complete": _FRAGMENT,
    "GET /fragments/{fragment}/history": _FRAGMENT,
    "POST /fragments/{fragment}/history": owner(ObjectKind.FRAGMENT, "fragment"),
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of fragments."""
    pages = _Pages(cloud)
    path = "/fragments/{fragment}"
    return [
        Route("/fragments", pages.index),
        Route("/fragments", pages.create, methods=["POST"]),
        Route(path, pages.show),
        Route(path, pages.act, methods=["POST"]),
        Route(f"{path}/check", pages.check, methods=["POST"]),
        Route(f"{path}/complete", pages.complete, methods=["POST"]),
        Route(f"{path}/history", pages.history),
        Route(f"{path}/history", pages.revert, methods=["POST"]),
    ]


def _saved_text(editing: FragmentEditing) -> str:
    return editing.text or written(editing.document)


class _Pages:
    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def _services(self, request: Request) -> tuple[Editor, AppService, str]:
        author: Author = author_of(request)
        return Editor(self._cloud, author), AppService(self._cloud, author), request.path_params.get("fragment", "")

    # ---- the list

    async def index(self, request: Request) -> Response:
        """List all fragments that the key may see."""
        return await self._index(request)

    async def _index(self, request: Request, error: str = "") -> Response:
        service, app, _ = self._services(request)
        lists = [
            (organization, owned, (await app.list_fragments(organization.id)).fragments)
            for organization, owned in await service.organizations()
        ]
        return render(
            request,
            "fragments.html",
            400 if error else 200,
            lists=lists,
            visibilities=_SHOWN,
            error=error,
        )

    async def create(self, request: Request) -> Response:
        """Create an empty fragment."""
        form = await fields(request, DOCUMENT_FORM)
        _, app, _ = self._services(request)
        try:
            fragment = await app.create_fragment(text_of(form, "name"), text_of(form, "organization"))
        except MachineError as error:
            if error.kind in (ErrorKind.INVALID, ErrorKind.EXISTS):
                return await self._index(request, str(error))
            raise
        return redirect(f"/fragments/{fragment.id}")

    # ---- the editor

    async def show(self, request: Request) -> Response:
        """Show the newest revision."""
        service, _, subject = self._services(request)
        editing = await service.fragment_editing(subject)
        return await self._page(request, editing, None, editing.fragment.revision)

    async def _page(
        self,
        request: Request,
        editing: FragmentEditing,
        text: str | None,
        base: int,
        *,
        error: str = "",
        note: str = "",
        merge: Merge | None = None,
        code: int = 200,
    ) -> Response:
        """Render the page with a draft, or with the saved fragment."""

        def rendered() -> Response:
            draft = _saved_text(editing) if text is None or not editing.may_save else text
            return render(
                request,
                "fragment.html",
                code,
                editing=editing,
                text=draft,
                base=base,
                findings=editor.findings_in(draft, editing.context, partial=True) if editing.may_save else (),
                items=outline(draft),
                models=editor.models(),
                schema=editor.schema_address(),
                visibilities=VISIBILITIES,
                error=error,
                note=note,
                merge=merge,
            )

        return await self._cloud.room.run(editing.fragment.organization_id, rendered)

    async def act(self, request: Request) -> Response:
        """Handle a button of the page or of the review."""
        form = await fields(request, DOCUMENT_FORM)
        service, _, subject = self._services(request)
        action = text_of(form, "action")
        editing = await service.fragment_editing(subject)
        if action in ("review", "save", "hold", "add", "check", "edit"):
            return await self._draft(request, form, action, editing)
        changes: Mapping[str, Callable[[Request, FormData], Awaitable[str]]] = {
            "tag": self._tag,
            "untag": self._untag,
            "settings": self._settings,
            "delete": self._delete,
        }
        if action not in changes:
            raise MachineError(f"there is no action {action[:50]!r}", kind=ErrorKind.INVALID)
        try:
            return redirect(await changes[action](request, form))
        except MachineError as error:
            if error.kind in (ErrorKind.PERMISSION, ErrorKind.UNAUTHENTICATED):
                raise
            return await self._page(request, editing, None, editing.fragment.revision, error=str(error), code=400)

    async def _draft(self, request: Request, form: FormData, action: str, editing: FragmentEditing) -> Response:
        text, base = editor.text_in(form), editor.number_in(form, "base")
        room, place = self._cloud.room, editing.fragment.organization_id
        try:
            if action == "add":
                text = await room.run(place, lambda: editor.with_added_resource(form))
            if action in ("add", "check", "edit"):
                return await self._page(request, editing, text, base)
            document = await room.run(place, lambda: editor.document_in(text))
            if base != editing.fragment.revision and not same(editing.document, document):
                return await self._merge(request, editing, base, document, text)
            if action in ("save", "hold"):
                return await self._save(request, editing, base, document, text, held=action == "hold")
        except MachineError as error:
            if error.kind is ErrorKind.PERMISSION:
                raise
            return await self._page(request, editing, text, base, error=str(error), code=400)

        page = await review_page(
            self._cloud,
            request,
            self._revised(request, editing),
            editing.document,
            document,
            findings=lambda: editor.findings_in(text, editing.context, partial=True),
            users=editing.seen + editing.others,
            spelling=text.strip() != _saved_text(editing).strip(),
            text=text,
            base=base,
        )
        if page is not None:
            return page
        note = "Nothing has changed: this is the saved fragment."
        return await self._page(request, editing, text, editing.fragment.revision, note=note)

    async def _save(
        self,
        request: Request,
        editing: FragmentEditing,
        base: int,
        document: dict[str, Any],
        text: str,
        *,
        held: bool,
    ) -> Response:
        """Save the draft; with `held`, for a rollout, which is to be started next."""
        service, app, subject = self._services(request)
        last_update = (await self._revision(request, base)).revision.saved
        try:
            await service.keep_fragment_text(subject, document, editor.kept_text(text, document))
            text_alone = without_comments(text)
            if held:
                rollouts = RolloutService(self._cloud, author_of(request))
                revision = await rollouts.update_fragment_for_rollout(subject, text_alone, last_update)
                what = f"{editing.fragment.organization_id}/fragment/{subject}/"
                return redirect(f"/rollouts/new?{urlencode({'what': what, 'revision': revision})}")
            await app.update_fragment(id=subject, fragment_config_json=text_alone, last_known_update=last_update)
        except MachineError as error:
            newest = await service.fragment_editing(subject)
            if error.kind is ErrorKind.PRECONDITION and newest.fragment.revision != base:
                return await self._merge(request, newest, base, document, text)  # another save came in between
            raise
        return redirect(f"/fragments/{editing.fragment.id}")

    async def _merge(
        self, request: Request, editing: FragmentEditing, base: int, document: dict[str, Any], text: str
    ) -> Response:
        old = (await self._revision(request, base)).revision.document
        newest = await self._revision(request, editing.fragment.revision)

        def merged_draft() -> tuple[str, Merge]:
            combined = merged(old, editing.document, document)
            return rewritten(text, combined.document), Merge(
                editing.fragment.revision,
                newest.who,
                editing.fragment.saved,
                review(old, editing.document),
                review(old, document),
                editor.conflicts_of(combined, old, editing.document, document),
            )

        draft, merge = await self._cloud.room.run(editing.fragment.organization_id, merged_draft)
        return await self._page(request, editing, draft, editing.fragment.revision, merge=merge, code=409)

    async def _revision(self, request: Request, number: int) -> Save:
        service, _, subject = self._services(request)
        saves = await service.fragment_revisions(subject, number + 1, 1)
        if not saves or saves[0].revision.number != number:
            raise missing("revision", str(number))
        return saves[0]

    # ---- other actions, each returning the page to show

    async def _tag(self, request: Request, form: FormData) -> str:
        _, app, subject = self._services(request)
        await app.set_fragment_tag(subject, text_of(form, "tag"), text_of(form, "revision"))
        return f"/fragments/{subject}"

    async def _untag(self, request: Request, form: FormData) -> str:
        _, app, subject = self._services(request)
        await app.delete_fragment_tag(subject, text_of(form, "tag"))
        return f"/fragments/{subject}"

    async def _settings(self, request: Request, form: FormData) -> str:
        _, app, subject = self._services(request)
        visibility = _WORDS.get(text_of(form, "visibility"))
        await app.update_fragment(id=subject, name=text_of(form, "name"), visibility=visibility)
        return f"/fragments/{subject}"

    async def _delete(self, request: Request, form: FormData) -> str:
        _, app, subject = self._services(request)
        await app.delete_fragment(subject)
        return "/fragments"

    # ---- while typing

    async def check(self, request: Request) -> Response:
        """Return the problems of a draft."""
        service, _, subject = self._services(request)
        context = (await service.fragment_editing(subject)).context
        text, _ = await editor.read_draft(request)
        return await service.offload(len(text), lambda: editor.check_response(text, context, partial=True))

    async def complete(self, request: Request) -> Response:
        """Return the completions at the cursor."""
        service, _, subject = self._services(request)
        context = (await service.fragment_editing(subject)).context
        text, cursor = await editor.read_draft(request)
        return await service.offload(len(text), lambda: editor.completion_response(text, cursor, context))

    # ---- history

    def _revised(self, request: Request, editing: FragmentEditing) -> RevisedDocument:
        service, app, subject = self._services(request)

        async def save(document: Mapping[str, Any], last_update: datetime) -> None:
            await app.update_fragment(id=subject, config=document, last_known_update=last_update)

        return RevisedDocument(
            editing.fragment.organization_id,
            SECTION,
            editing.fragment.name,
            f"/fragments/{subject}",
            up=f"/fragments/{subject}",
            part="",
            history_path=f"/fragments/{subject}/history",
            current=editing.fragment.revision,
            may_save=editing.may_save,
            revisions=partial(service.fragment_revisions, subject),
            revision=partial(self._revision, request),
            save=save,
        )

    async def history(self, request: Request) -> Response:
        """Show the revisions with their changes."""
        service, _, subject = self._services(request)
        of = self._revised(request, await service.fragment_editing(subject))
        return await history_page(self._cloud, request, of, PAGE)

    async def revert(self, request: Request) -> Response:
        """Save an old revision as a new one."""
        service, _, subject = self._services(request)
        of = self._revised(request, await service.fragment_editing(subject))
        return await revert(self._cloud, request, of, PAGE)
