"""Configuration of a machine: editor, review before saving, state of the running configuration, history."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final

import trio
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from cloud.domain.fleet.watching import RENEWED
from cloud.domain.machines.online import SILENCE
from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.rules import AccessRule, operator, owner
from cloud.editing.comments import without_comments
from cloud.editing.documents import outline, written
from cloud.editing.edits import rewritten
from cloud.editing.insertion import resources_in, with_resources
from cloud.editing.merging import merged, same
from cloud.editing.review import review
from cloud.editing.triggering import FIELDS, entry_of, with_trigger
from cloud.services.app import AppService
from cloud.services.common.base import Cloud
from cloud.services.configurations.editing import Editing, Editor
from cloud.values.limits import DOCUMENT_FORM
from cloud.web.common.live import FRAME, LivePage, live, news_of
from cloud.web.common.site import author_of, fields, redirect, render, render_macro, text_of
from cloud.web.views import editor
from cloud.web.views.editor import Merge
from cloud.web.views.revisions import RevisedDocument, history_page, revert, review_page
from rpc.access import TOKEN_PATH
from schema import ErrorKind, MachineError
from training import with_model

PAGE: Final = 10  # revisions per page; each is shown with its difference
SECTION: Final = ("Machines", "/")


_PART: Final = operator(ObjectKind.PART, "part")

RULES: Final[Mapping[str, AccessRule]] = {
    "GET /machines/{part}/config": _PART,
    "POST /machines/{part}/config": _PART | "saving: owners",
    "POST /machines/{part}/config/check": _PART,
    "POST /machines/{part}/config/complete": _PART,
    "WS /machines/{part}/config/live": _PART,
    "GET /machines/{part}/history": _PART,
    "POST /machines/{part}/history": owner(ObjectKind.PART, "part"),
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of the configuration and history of a part."""
    pages = _Pages(cloud)
    path = "/machines/{part}/config"
    return [
        Route(path, pages.show),
        Route(path, pages.act, methods=["POST"]),
        Route(f"{path}/check", pages.check, methods=["POST"]),
        Route(f"{path}/complete", pages.complete, methods=["POST"]),
        WebSocketRoute(f"{path}/live", pages.live),
        Route("/machines/{part}/history", pages.history),
        Route("/machines/{part}/history", pages.revert, methods=["POST"]),
    ]


Change = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def _model(form: FormData) -> Change:
    """Return the change after which a machine uses the model that a form names."""
    package, version = (text_of(form, field) for field in ("package", "version"))
    if not package or not version:
        raise MachineError("the form names no version of a model", kind=ErrorKind.INVALID)
    return lambda document: with_model(document, package, version)


def _resources(form: FormData) -> Change:
    """Return the change that adds the resources in field `resources`, as a discovery service finds them."""
    text = text_of(form, "resources")
    return lambda document: with_resources(document, resources_in(text))


def _trigger(form: FormData) -> Change:
    """Return the change that adds the trigger of a form, or replaces the one named in field `old`."""
    entry, old = entry_of({field: text_of(form, field) for field in FIELDS}), text_of(form, "old")
    return lambda document: with_trigger(document, entry, old)


_INSERTED: Final[Mapping[str, Callable[[FormData], Change]]] = {
    "use": _model,
    "insert": _resources,
    "trigger": _trigger,
}
"""Actions of other pages that change the saved configuration; the change is reviewed before it is saved."""


def _saved_text(editing: Editing) -> str:
    return editing.text or written(editing.document)


class _Pages:
    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def _editor(self, request: Request) -> tuple[Editor, str]:
        return Editor(self._cloud, author_of(request)), request.path_params["part"]

    # ---- the editor

    async def show(self, request: Request) -> Response:
        """Show the configuration in force."""
        service, subject = self._editor(request)
        editing = await service.editing(subject)
        return await self._page(request, editing, None, editing.part.revision)

    async def _page(
        self,
        request: Request,
        editing: Editing,
        text: str | None,
        base: int,
        *,
        error: str = "",
        note: str = "",
        merge: Merge | None = None,
        code: int = 200,
    ) -> Response:
        """Render the page with a draft, or with the saved configuration."""
        subject = request.path_params["part"]

        def rendered() -> Response:
            draft = _saved_text(editing) if text is None or not editing.may_save else text
            return render(
                request,
                "config.html",
                code,
                live=f"/machines/{subject}/config/live",
                editing=editing,
                status=editing.running,
                text=draft,
                base=base,
                findings=editor.findings_in(draft, editing.context) if editing.may_save else (),
                items=outline(draft),
                models=editor.models(),
                schema=editor.schema_address(),
                token=TOKEN_PATH,
                resolved=written(editing.merged),
                error=error,
                note=note,
                merge=merge,
            )

        return await self._cloud.room.run(editing.organization, rendered)

    async def act(self, request: Request) -> Response:
        """Handle a button of the editor or of the review."""
        form = await fields(request, DOCUMENT_FORM)
        action, text = str(form.get("action", "")), editor.text_in(form)
        base = 0 if action in _INSERTED else editor.number_in(form, "base")
        service, subject = self._editor(request)
        if action == "add":
            return await self._add(request, form, text, base)
        editing = await service.editing(subject)
        if action in ("check", "edit"):
            return await self._page(request, editing, text, base)
        if action in _INSERTED:
            text, base = await self._inserted(editing, _INSERTED[action](form)), editing.part.revision
            action = "review"
        if action not in ("review", "save"):
            raise MachineError(f"there is no action {action[:50]!r}", kind=ErrorKind.INVALID)
        try:
            document = await self._cloud.room.run(editing.organization, lambda: editor.document_in(text))
            if base != editing.part.revision and not same(editing.document, document):
                return await self._merge(request, editing, base, document, text)
            if action == "save":
                return await self._save(request, editing, base, document, text)
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
            findings=lambda: editor.findings_in(text, editing.context),
            users=0,
            spelling=text.strip() != _saved_text(editing).strip(),
            text=text,
            base=base,
        )
        if page is not None:
            return page
        note = "Nothing has changed: this is the saved configuration."
        return await self._page(request, editing, text, editing.part.revision, note=note)

    async def _inserted(self, editing: Editing, change: Change) -> str:
        """Return the draft that a change of the saved configuration makes; PERMISSION if it cannot be saved."""
        if not editing.may_save:
            raise MachineError(
                "this needs the role of an owner of the machine",
                kind=ErrorKind.PERMISSION,
                remedy="use a key with that role, or ask an owner",
            )
        return await self._cloud.room.run(
            editing.organization, lambda: rewritten(_saved_text(editing), change(editing.document))
        )

    async def _add(self, request: Request, form: Any, text: str, base: int) -> Response:
        service, subject = self._editor(request)
        try:
            text = await service.offload(len(text), lambda: editor.with_added_resource(form))
        except MachineError as error:
            return await self._page(request, await service.editing(subject), text, base, error=str(error), code=400)
        return await self._page(request, await service.editing(subject), text, base)

    async def _save(
        self, request: Request, editing: Editing, base: int, document: Mapping[str, Any], text: str
    ) -> Response:
        service, subject = self._editor(request)
        last_update = (await service.revision(subject, base)).revision.saved
        app = AppService(self._cloud, author_of(request))
        try:
            await service.keep_text(subject, document, editor.kept_text(text, document))
            text_alone = without_comments(text)
            await app.update_robot_part(id=subject, robot_config_json=text_alone, last_known_update=last_update)
        except MachineError as error:
            if error.kind is ErrorKind.PRECONDITION:  # another save came in between
                return await self._merge(request, await service.editing(subject), base, document, text)
            raise
        return redirect(f"/machines/{subject}/config")

    async def _merge(
        self, request: Request, editing: Editing, base: int, document: Mapping[str, Any], text: str
    ) -> Response:
        """Render the page with the changes of both as a new draft, so that neither is lost."""
        service, subject = self._editor(request)
        old = (await service.revision(subject, base)).revision.document

        def merged_draft() -> tuple[str, Merge]:
            combined = merged(old, editing.document, document)
            conflicts = editor.conflicts_of(combined, old, editing.document, document)
            theirs, mine = review(old, editing.document), review(old, document)
            merge = Merge(editing.part.revision, editing.author, editing.part.saved, theirs, mine, conflicts)
            return rewritten(text, combined.document), merge

        draft, merge = await self._cloud.room.run(editing.organization, merged_draft)
        return await self._page(request, editing, draft, editing.part.revision, merge=merge, code=409)

    # ---- while typing

    async def check(self, request: Request) -> Response:
        """Return the problems of a draft."""
        service, subject = self._editor(request)
        context = await service.context(subject)
        text, _ = await editor.read_draft(request)
        return await service.offload(len(text), lambda: editor.check_response(text, context))

    async def complete(self, request: Request) -> Response:
        """Return the completions at the cursor."""
        service, subject = self._editor(request)
        context = await service.context(subject)
        text, cursor = await editor.read_draft(request)
        return await service.offload(len(text), lambda: editor.completion_response(text, cursor, context))

    # ---- the running configuration

    async def live(self, socket: WebSocket) -> None:
        """Send the state of the machine whenever it changes."""
        subject = socket.path_params["part"]
        await live(self._cloud, socket, partial(self._follow, subject), partial(self._watch, subject))

    async def _watch(self, subject: str, page: LivePage) -> None:
        while True:
            await Editor(self._cloud, page.author).watch(subject)
            await trio.sleep(RENEWED.total_seconds())

    async def _follow(self, subject: str, page: LivePage) -> None:
        service, sent = Editor(self._cloud, page.author), ""
        topics = [(topic, subject) for topic in ("part", "seen", "presence", "live")]
        async with news_of(self._cloud, *topics) as news:
            while True:
                html = render_macro("editing.html", "running", await service.running(subject), self._cloud.clock())
                if html != sent:
                    sent = html
                    await page.send(patch={"running": html})
                await trio.sleep(FRAME)
                await news.next(SILENCE.total_seconds())  # silence is news too: the machine has gone offline

    # ---- history

    def _revised(self, request: Request, editing: Editing) -> RevisedDocument:
        service, subject = self._editor(request)
        app = AppService(self._cloud, author_of(request))

        async def save(document: Mapping[str, Any], last_update: datetime) -> None:
            await app.update_robot_part(id=subject, robot_config=document, last_known_update=last_update)

        return RevisedDocument(
            editing.organization,
            SECTION,
            editing.part.machine,
            f"/machines/{subject}/config",
            up=f"/machines/{subject}",
            part=subject,
            history_path=f"/machines/{subject}/history",
            current=editing.part.revision,
            may_save=editing.may_save,
            revisions=partial(service.revisions, subject),
            revision=partial(service.revision, subject),
            save=save,
        )

    async def history(self, request: Request) -> Response:
        """Show the revisions with their changes."""
        service, subject = self._editor(request)
        of = self._revised(request, await service.editing(subject))
        return await history_page(self._cloud, request, of, PAGE)

    async def revert(self, request: Request) -> Response:
        """Save an old revision as a new one."""
        service, subject = self._editor(request)
        return await revert(self._cloud, request, self._revised(request, await service.editing(subject)), PAGE)
