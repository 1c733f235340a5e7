"""`/alerts/rules`: rules of alerts, with a form, previews, tests, and who is notified."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from cloud.domain.permissions.rules import OF_FORM, AccessRule, signed_in
from cloud.services.alerts.alert_messages import AlertAnswer, AlertRule, AlertTarget, ExplainAlertRuleResponse
from cloud.services.alerts.alerts import AlertService
from cloud.services.app import AppService
from cloud.services.common.base import Cloud
from cloud.services.machines.fleet import FleetService
from cloud.web.common.site import author_of, fields, redirect, render, status_of, text_of
from cloud.web.views.alert_view import CHOICES, EMPTY, FIELDS, form_of, rule_of, words
from schema import ErrorKind, MachineError

PATH: Final = "/alerts/rules"
LISTED: Final = 500  # machines and locations that the form offers


@dataclass(frozen=True, slots=True)
class Draft:
    """The form of a rule. `preview` is what it would have caused, if that was asked for."""

    subject: str
    form: dict[str, str]
    error: str = ""
    preview: ExplainAlertRuleResponse | None = None


@dataclass(slots=True)
class Shown:
    """The content of the page of an organization."""

    organization: str = ""
    owner: bool = False
    rules: list[AlertRule] = field(default_factory=list)
    targets: list[AlertTarget] = field(default_factory=list)


RULES: Final[Mapping[str, AccessRule]] = {
    "GET /alerts/rules": signed_in("rules of the caller's organization, for its operators"),
    "POST /alerts/rules": OF_FORM,
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of the page, which must come before those of alerts."""
    pages = _RulePages(cloud)
    return [Route(PATH, pages.index), Route(PATH, pages.act, methods=["POST"])]


class _RulePages:
    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def index(self, request: Request) -> Response:
        """`GET /alerts/rules?edit=`, or `?new=1` with `part`, `method`, `field`, `operator`, `value` of the form."""
        query = request.query_params
        shown = await self._shown(request)
        draft = None
        if edited := query.get("edit", ""):
            for record in shown.rules:
                if record.id == edited:
                    draft = Draft(edited, form_of(record.rule))
        elif query.get("new"):
            names = ("name", "method", "field", "operator", "value", "scope")
            form = {name: query[name][:200] for name in names if query.get(name)}
            draft = Draft("", {**EMPTY, **form})
        return await self._page(request, shown, draft)

    async def _shown(self, request: Request, organization: str = "") -> Shown:
        """Return the rules of the organization of the caller that it may see."""
        author = author_of(request)
        owned = [each.id for each in await AppService(self._cloud, author).list_organizations()]
        for subject in [organization] if organization else owned:
            try:
                listed = await AlertService(self._cloud, author).list_alert_rules(subject)
            except MachineError as error:
                if error.kind not in (ErrorKind.NOT_FOUND, ErrorKind.PERMISSION):
                    raise
                continue
            try:
                targets = await AlertService(self._cloud, author).list_alert_targets(subject)
            except MachineError as error:
                if error.kind is not ErrorKind.PERMISSION:
                    raise
                return Shown(subject, owner=False, rules=listed)
            return Shown(subject, owner=True, rules=listed, targets=targets)
        return Shown()

    async def _page(
        self,
        request: Request,
        shown: Shown,
        draft: Draft | None = None,
        error: MachineError | None = None,
        answers: list[AlertAnswer] | None = None,
    ) -> Response:
        scopes = await self._scopes(request, draft) if shown.owner else []
        return render(
            request,
            "alert_rules.html",
            status_of(error) if error else 400 if draft is not None and draft.error else 200,
            shown=shown,
            rules=[(record, words(record)) for record in shown.rules],
            draft=draft,
            form=draft.form if draft is not None else EMPTY,
            choices=CHOICES,
            scopes=scopes,
            part=request.query_params.get("part", ""),
            answers=answers,
            error=error or "",
        )

    async def _scopes(self, request: Request, draft: Draft | None) -> list[tuple[str, str]]:
        fleet = FleetService(self._cloud, author_of(request))
        options = [("{}", "all machines")]
        options += [(json.dumps({"locations": [each.id]}), f"in {each.path}") for each in await fleet.locations()]
        options += [(json.dumps({"machines": [each.id]}), each.name) for each in await fleet.search("", LISTED)]
        options = options[:LISTED]
        chosen = draft.form["scope"] if draft is not None else "{}"
        return options if chosen in dict(options) else [*options, (chosen, "as chosen before")]

    async def act(self, request: Request) -> Response:
        """Handle a form: `save`, `preview`, `switch`, `delete`, `test`, `notify` or `remove`."""
        form = await fields(request)
        action, subject = text_of(form, "action"), text_of(form, "rule")
        organization = text_of(form, "organization")
        service = AlertService(self._cloud, author_of(request))
        try:
            if action in ("save", "preview"):
                return await self._draft(request, form, organization, subject, save=action == "save")
            if action == "test":
                sent = await service.send_alert_test(organization, subject)
                answers = await AlertService(self._cloud, author_of(request)).wait_for_alert_test(organization, sent)
                return await self._page(request, await self._shown(request, organization), answers=answers)
            if action == "switch":
                await self._switch(request, organization, subject)
            elif action == "delete":
                await service.delete_alert_rule(organization, subject)
            elif action == "notify":
                values = (text_of(form, name) for name in ("type", "value", "secret"))
                await service.add_alert_target(organization, *values)
            elif action == "remove":
                await service.remove_alert_target(organization, text_of(form, "type"), text_of(form, "value"))
            else:
                raise MachineError(f"there is no action {action[:40]!r}", kind=ErrorKind.INVALID)
        except MachineError as error:
            if error.kind not in (ErrorKind.INVALID, ErrorKind.EXHAUSTED, ErrorKind.PRECONDITION, ErrorKind.EXISTS):
                raise
            return await self._page(request, await self._shown(request, organization), error=error)
        return redirect(PATH)

    async def _draft(
        self, request: Request, form: FormData, organization: str, subject: str, *, save: bool
    ) -> Response:
        author, values = author_of(request), {name: text_of(form, name) for name in FIELDS}
        shown = await self._shown(request, organization)
        preview = None
        try:
            enabled = all(record.rule.get("enabled", True) for record in shown.rules if record.id == subject)
            rule = rule_of(values, enabled=enabled)
            if save:
                name = str(rule["name"])
                await AlertService(self._cloud, author).set_alert_rule(organization, rule, subject, name)
                return redirect(PATH)
            preview = await AlertService(self._cloud, author).explain_alert_rule(
                organization, {**rule, "name": rule["name"] or "preview"}
            )
        except MachineError as error:
            if error.kind not in (ErrorKind.INVALID, ErrorKind.EXHAUSTED, ErrorKind.EXISTS):
                raise
            return await self._page(request, shown, Draft(subject, values, str(error)))
        return await self._page(request, shown, Draft(subject, values, preview=preview))

    async def _switch(self, request: Request, organization: str, subject: str) -> None:
        shown = await self._shown(request, organization)
        for record in shown.rules:
            if record.id == subject:
                rule: dict[str, Any] = {**record.rule, "enabled": not record.rule.get("enabled", True)}
                name = str(rule["name"])
                service = AlertService(self._cloud, author_of(request))
                await service.set_alert_rule(organization, rule, subject, name)
