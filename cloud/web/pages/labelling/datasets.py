"""`/datasets` and `/datasets/<id>`: datasets, and the pictures and labels of one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final
from urllib.parse import quote

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.rules import OF_FORM, ROLE_ANYWHERE, AccessRule, operator
from cloud.services.app import AppService
from cloud.services.common.base import Cloud
from cloud.services.data.datasets import DatasetService
from cloud.services.labelling.labelling import LabellingService, Listed
from cloud.web.common.site import author_of, fields, redirect, render, status_of, text_of
from cloud.web.views.labelling_view import PROGRESS, PictureQuery, choices, labels_json, suspicion_text
from rpc.pages import wants_json
from schema import ErrorKind, MachineError

LISTED: Final = 100  # datasets per page
PAGE: Final = 60  # pictures: full rows with 2, 3, 4, 5 or 6 columns
LABELS: Final = 30  # labels in the table, unless all are requested
MAX_NUMBER: Final = 2**62  # of a picture

Action = Callable[[Request, str, FormData], Awaitable[None]]


RULES: Final[Mapping[str, AccessRule]] = {
    "GET /datasets": ROLE_ANYWHERE,
    "POST /datasets": OF_FORM | "operators of the organization that the form names",
    "GET /datasets/{dataset}": operator(ObjectKind.DATASET, "dataset"),
    "POST /datasets/{dataset}/{action}": operator(ObjectKind.DATASET, "dataset") | "deleting: owners",
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of the list, of a dataset, and of their forms."""
    pages = DatasetPages(cloud)
    return [
        Route("/datasets", pages.index, methods=["GET"]),
        Route("/datasets", pages.create, methods=["POST"]),
        Route("/datasets/{dataset}", pages.dataset, methods=["GET"]),
        Route("/datasets/{dataset}/{action}", pages.act, methods=["POST"]),
    ]


class DatasetPages:
    """Endpoints of datasets."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._actions: Mapping[str, Action] = {
            "rename": self._rename,
            "add-label": self._add_label,
            "change-label": self._change_label,
            "remove-label": self._remove_label,
        }

    # ---- the list

    async def index(self, request: Request) -> Response:
        """`GET /datasets`."""
        return await self._index(request)

    async def _index(self, request: Request, error: MachineError | None = None) -> Response:
        author = author_of(request)
        organizations = await AppService(self._cloud, author).list_organizations()
        service = LabellingService(self._cloud, author)
        only, after = request.query_params.get("organization", ""), request.query_params.get("after", "")
        lists: list[tuple[str, str, list[Listed]]] = []
        for organization in organizations:
            if only in ("", organization.id):
                try:
                    listed = await service.listed(organization.id, after, LISTED)
                except MachineError as refusal:
                    if refusal.kind is not ErrorKind.NOT_FOUND:  # a role at a part of the organization
                        raise
                else:
                    lists.append((organization.id, organization.name, listed))
        return render(
            request,
            "datasets.html",
            status_of(error) if error else 200,
            lists=lists,
            limit=LISTED,
            after=after,
            error=error,
        )

    async def create(self, request: Request) -> Response:
        """`POST /datasets`, fields `organization` and `name`."""
        form = await fields(request)
        service = DatasetService(self._cloud, author_of(request))
        try:
            subject = await service.create_dataset(text_of(form, "name"), text_of(form, "organization"))
        except MachineError as error:
            return await self._index(request, error)
        return redirect(f"/datasets/{subject}")

    # ---- one dataset

    async def dataset(self, request: Request) -> Response:
        """`GET /datasets/<id>?show=&label=&machine=&start=&end=&after=`."""
        return await self._dataset(request)

    async def _dataset(self, request: Request, error: MachineError | None = None) -> Response:
        subject, query = request.path_params["dataset"], PictureQuery.of(request.query_params)
        try:
            chosen = query.filter()
        except MachineError as caught:
            error, query = error or caught, PictureQuery()
            chosen = query.filter()
        after = request.query_params.get("after", "")
        number = int(after) if after.isascii() and after.isdigit() and len(after) < 19 else 0
        shown = await LabellingService(self._cloud, author_of(request)).dataset_page(
            subject, chosen, min(number, MAX_NUMBER), PAGE
        )
        return render(
            request,
            "dataset.html",
            status_of(error) if error else 200,
            shown=shown,
            dataset=shown.dataset,
            query=query,
            progress=PROGRESS,
            listed=shown.labels if request.query_params.get("labels") == "all" else shown.labels[:LABELS],
            labels=choices(label.name for label in shown.labels),
            machines=choices(shown.machines),
            colors={label.name: label.color for label in shown.labels},
            suspicion_text=suspicion_text,
            next=shown.tiles[-1].picture.number if len(shown.tiles) == PAGE else 0,
            error=error,
        )

    async def act(self, request: Request) -> Response:
        """`POST /datasets/<id>/rename|delete|add-label|change-label|remove-label`."""
        subject, action, form = request.path_params["dataset"], request.path_params["action"], await fields(request)
        author = author_of(request)
        try:
            if action == "delete":
                return await self._delete(request, subject, form)
            if action not in self._actions:
                raise MachineError(f"there is no action {action[:40]!r} for datasets", kind=ErrorKind.NOT_FOUND)
            await self._actions[action](request, subject, form)
        except MachineError as error:
            if wants_json(request.headers):
                return JSONResponse({"error": str(error)}, status_of(error))
            return await self._dataset(request, error)
        if wants_json(request.headers):
            labels = await LabellingService(self._cloud, author).labels(subject)
            return JSONResponse({"labels": labels_json(labels)})
        return redirect(f"/datasets/{quote(subject, safe='')}")

    async def _delete(self, request: Request, subject: str, form: FormData) -> Response:
        service = DatasetService(self._cloud, author_of(request))
        (record,) = await service.list_datasets_by_ids([subject])
        if text_of(form, "name") != record.name:
            raise MachineError(
                "the name is not that of the dataset", kind=ErrorKind.INVALID, remedy=f"type {record.name} to delete it"
            )
        await service.delete_dataset(subject)
        return redirect("/datasets")

    async def _rename(self, request: Request, subject: str, form: FormData) -> None:
        await DatasetService(self._cloud, author_of(request)).rename_dataset(subject, text_of(form, "name"))

    async def _add_label(self, request: Request, subject: str, form: FormData) -> None:
        await LabellingService(self._cloud, author_of(request)).add_label(subject, text_of(form, "label"))

    async def _change_label(self, request: Request, subject: str, form: FormData) -> None:
        service, label = LabellingService(self._cloud, author_of(request)), text_of(form, "label")
        if color := text_of(form, "color"):
            await service.set_label_color(subject, label, color)
        if (name := text_of(form, "name")) and name != label:
            await service.rename_label(subject, label, name)

    async def _remove_label(self, request: Request, subject: str, form: FormData) -> None:
        await LabellingService(self._cloud, author_of(request)).remove_label(subject, text_of(form, "label"))
