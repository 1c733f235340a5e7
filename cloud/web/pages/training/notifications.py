"""`/training/notifications`: who is notified when a training job has ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from cloud.domain.permissions.rules import OF_FORM, AccessRule, signed_in
from cloud.services.app import AppService
from cloud.services.common.base import Cloud
from cloud.services.training.following import TrainingService
from cloud.services.training.training_messages import TrainingNotification
from cloud.web.common.site import author_of, fields, redirect, render, status_of, text_of
from schema import ErrorKind, MachineError

PATH = "/training/notifications"


RULES: Final[Mapping[str, AccessRule]] = {
    "GET /training/notifications": signed_in("those of organizations that the caller owns"),
    "POST /training/notifications": OF_FORM,
    "POST /training/notifications/remove": OF_FORM,
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of the page, which must come before those of jobs."""
    pages = NotificationPages(cloud)
    return [
        Route(PATH, pages.index, methods=["GET"]),
        Route(PATH, pages.add, methods=["POST"]),
        Route(f"{PATH}/remove", pages.remove, methods=["POST"]),
    ]


class NotificationPages:
    """Endpoints of notifications."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def index(self, request: Request) -> Response:
        """`GET /training/notifications`."""
        return await self._index(request)

    async def _index(self, request: Request, error: MachineError | None = None) -> Response:
        author = author_of(request)
        lists = list[tuple[str, str, list[TrainingNotification]]]()
        for organization in await AppService(self._cloud, author).list_organizations():
            try:
                listed = await TrainingService(self._cloud, author).list_notifications(organization.id)
            except MachineError as refused:
                if refused.kind not in (ErrorKind.NOT_FOUND, ErrorKind.PERMISSION):
                    raise
                continue
            lists.append((organization.id, organization.name, listed))
        code = status_of(error) if error else 200 if lists else 403
        return render(request, "training_notifications.html", code, lists=lists, error=error, now=self._cloud.clock())

    async def add(self, request: Request) -> Response:
        """`POST /training/notifications`, fields `organization`, `type`, `value`, `secret`."""
        form = await fields(request)
        names = ("organization", "type", "value", "secret")
        organization, kind, value, secret = (text_of(form, name) for name in names)
        try:
            await TrainingService(self._cloud, author_of(request)).add_notification(organization, kind, value, secret)
        except MachineError as error:
            if error.kind not in (ErrorKind.INVALID, ErrorKind.EXHAUSTED):
                raise
            return await self._index(request, error)
        return redirect(PATH)

    async def remove(self, request: Request) -> Response:
        """`POST /training/notifications/remove`, fields `organization`, `type`, `value`."""
        form = await fields(request)
        organization, kind, value = (text_of(form, name) for name in ("organization", "type", "value"))
        await TrainingService(self._cloud, author_of(request)).remove_notification(organization, kind, value)
        return redirect(PATH)
