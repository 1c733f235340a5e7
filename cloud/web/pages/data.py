"""`/data`: data that machines have captured, files and exports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from cloud.documents.pieces import LARGE
from cloud.domain.machines.machines import PartRecord
from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.rules import FILTERED, OF_FORM, AccessRule, operator, public, signed_in
from cloud.services.app import AppService
from cloud.services.common.base import Cloud
from cloud.services.data import data_messages as m
from cloud.services.data.data import DataService
from cloud.services.data.datasets import DatasetService
from cloud.services.machines.fleet import FleetService
from cloud.services.organizations.roles import RoleService
from cloud.web.api.downloads import Downloads
from cloud.web.api.series import SeriesData
from cloud.web.api.thumbnails import Thumbnails
from cloud.web.common.site import author_of, fields, redirect, render, status_of, text_of
from cloud.web.views.alert_view import rule_link
from cloud.web.views.data_view import DRAWN, FILES, DataQuery, ReadingTable, amount, plots, table, tile
from cloud.web.views.plots import WIDTH
from rpc.pages import plot_props
from schema import ErrorKind, MachineError

TILES: Final = 60  # files per page: full rows with 2, 3, 4, 5 or 6 columns
LINES: Final = 200  # readings per page
NO_TIMES: Final = {"view": "", "start": "", "end": "", "after": "", "plots": ""}
INSTANT: Final = timedelta(microseconds=1)
LATEST: Final = datetime.max.replace(tzinfo=UTC) - INSTANT


RULES: Final[Mapping[str, AccessRule]] = {
    "GET /files/{id}": public("with a signed link; otherwise operators of the origin of the file"),
    "GET /files/{id}/thumbnail": operator(ObjectKind.FILE, "id"),
    "GET /data": FILTERED,
    "GET /machines/{id}/data": signed_in("redirects to /data"),
    "GET /data/series": FILTERED,
    "GET /data/rows": FILTERED,
    "GET /data/export": FILTERED,
    "POST /data/change": signed_in("labels: operators; deleting: owners"),
    "POST /data/retention": OF_FORM,
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of the page, its forms, and downloads."""
    pages, downloads, thumbnails = DataPages(cloud), Downloads(cloud), Thumbnails(cloud)
    return [
        Route("/data", pages.index, methods=["GET"]),
        Route("/machines/{id}/data", pages.of_part, methods=["GET"]),
        Route("/data/change", pages.change, methods=["POST"]),
        Route("/data/retention", pages.retention, methods=["POST"]),
        Route("/data/series", SeriesData(cloud).series, methods=["GET"]),
        Route("/data/rows", SeriesData(cloud).rows, methods=["GET"]),
        Route("/data/export", downloads.export, methods=["GET"]),
        Route("/files/{id}", downloads.file, methods=["GET"]),
        Route("/files/{id}/thumbnail", thumbnails.thumbnail, methods=["GET"]),
    ]


@dataclass(frozen=True, slots=True)
class FilesForm:
    """What a person has selected and entered in the form for files, which is kept if it is refused."""

    ids: frozenset[str] = frozenset()
    tag: str = ""
    dataset: str = ""
    name: str = ""


class DataPages:
    """Endpoints of the data page."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def index(self, request: Request) -> Response:
        """`GET /data?view=files|readings` and the fields of a filter."""
        return await self._index(request, DataQuery.of(request.query_params))

    async def of_part(self, request: Request) -> Response:
        """`GET /machines/<part>/data`: redirect to the data of a part."""
        author, subject = author_of(request), request.path_params["id"]
        await FleetService(self._cloud, author).part(subject)
        return redirect(f"/data?{DataQuery(part=subject).encoded()}")

    async def _index(
        self, request: Request, query: DataQuery, error: MachineError | None = None, chosen: FilesForm | None = None
    ) -> Response:
        author = author_of(request)
        data = DataService(self._cloud, author)
        files, readings, drawn = m.BinaryPage([], 0, ""), m.TabularPage([], [], 0, ""), []
        shown, to = ReadingTable(), query.end
        try:
            data_filter = query.filter()
            if query.view == FILES:
                files = await data.binary_data_by_filter(_request(data_filter, query, TILES))
            else:
                page_request = _request(data_filter, query, LINES)
                readings = page = await data.tabular_data_by_filter(page_request)
                shown = await data.offload(LARGE, lambda: table(page))
                newest = readings.data[0].time_requested if readings.data else None
                if newest is not None:
                    end = min(newest, LATEST) + INSTANT if query.after and not query.start else None
                    to = end.isoformat() if end else query.end
                    if query.plots == DRAWN:  # scripts read the numbers themselves
                        drawn = plots(await data.tabular_series(data_filter, end=end, points=WIDTH))
        except MachineError as caught:
            error = error or caught
        length, further = len(files.data) or len(readings.data), _next(files.last, len(files.data), TILES)
        further = further or _next(readings.last, len(readings.data), LINES)
        organizations = [(item.id, item.name) for item in await AppService(self._cloud, author).list_organizations()]
        shown_part = await self._part(request, query.part)
        return render(
            request,
            "data.html",
            status_of(error) if error else 200,
            query=query,
            part=shown_part,
            alert_here=rule_link(
                query.part,
                shown_part.machine_id if shown_part is not None else "",
                (query.type, query.component, query.method or "Readings") if query.component else (),
            ),
            error=error,
            tiles=[tile(file) for file in files.data],
            table=shown,
            chosen=chosen or FilesForm(),
            plots=drawn,
            plot_props=plot_props(
                "/data/series", "readings", query=query.encoded(**NO_TIMES), start=query.start, end=to
            ),
            amount=amount(query, length, bool(further)),
            next=further,
            tags=await data.tags_of_newest_files(),
            datasets=await self._datasets(request, [organization for organization, _ in organizations]),
            retention=await self._retention(request, organizations),
        )

    async def _part(self, request: Request, subject: str) -> PartRecord | None:
        """Return the part whose data are shown; None if all parts are, or if it no longer exists."""
        service = FleetService(self._cloud, author_of(request))
        try:
            return await service.part(subject) if subject else None
        except MachineError as error:
            if error.kind is ErrorKind.NOT_FOUND:
                return None
            raise

    async def change(self, request: Request) -> Response:
        """`POST /data/change`: tag the selected files, add them to a dataset, or delete them."""
        form = await fields(request)
        query = DataQuery.of({name: text_of(form, name) for name in DataQuery.__slots__})
        ids = [value for value in form.getlist("id") if isinstance(value, str)]
        author, action = author_of(request), text_of(form, "action")
        data = DataService(self._cloud, author)
        try:
            if not ids:
                raise MachineError("no file is selected", kind=ErrorKind.INVALID, remedy="select at least one file")
            if action == "tag":
                await data.add_tags_to_binary_data_by_ids([text_of(form, "new_tag")], binary_data_ids=ids)
            elif action == "dataset":
                await self._collect(request, text_of(form, "into"), text_of(form, "new_dataset"), ids)
            elif action == "delete" and text_of(form, "sure") == "yes":
                await data.delete_binary_data_by_ids(binary_data_ids=ids)
            elif action == "delete":
                return render(request, "data_delete.html", query=query, ids=ids)
            else:
                raise MachineError("the form has no valid action", kind=ErrorKind.INVALID)
        except MachineError as error:
            chosen = FilesForm(frozenset(ids), *(text_of(form, name) for name in ("new_tag", "into", "new_dataset")))
            return await self._index(request, query, error, chosen)
        return redirect(f"/data?{query.encoded()}")

    async def retention(self, request: Request) -> Response:
        """`POST /data/retention`: set for how many days an organization keeps its data."""
        form = await fields(request)
        days = text_of(form, "days") or "0"
        try:
            if not (days.isascii() and days.isdigit() and len(days) < 9):
                raise MachineError(
                    f"{days[:20]!r} is not a number of days",
                    kind=ErrorKind.INVALID,
                    remedy="enter 0 to keep data forever",
                )
            data = DataService(self._cloud, author_of(request))
            await data.set_retention(text_of(form, "organization"), int(days))
        except MachineError as error:
            return await self._index(request, DataQuery(), error)
        return redirect("/data")

    async def _collect(self, request: Request, dataset: str, name: str, ids: list[str]) -> None:
        author = author_of(request)
        if name:
            (owner, *more) = await AppService(self._cloud, author).list_organizations()
            if more:
                first = (await DataService(self._cloud, author).binary_data_by_ids(binary_data_ids=ids[:1])).data[0]
                owner_id = first.metadata.capture_metadata.organization_id
            else:
                owner_id = owner.id
            dataset = await DatasetService(self._cloud, author).create_dataset(name, owner_id)
        if not dataset:
            raise MachineError(
                "no dataset is selected", kind=ErrorKind.INVALID, remedy="select one, or enter a name for a new one"
            )
        await DataService(self._cloud, author).add_binary_data_to_dataset_by_ids(dataset, binary_data_ids=ids)

    async def _datasets(self, request: Request, owners: list[str]) -> list[tuple[str, str]]:
        """Return the datasets that the caller may see, which takes a role at the whole organization."""
        service = DatasetService(self._cloud, author_of(request))
        datasets: list[tuple[str, str]] = []
        for owner in owners:
            try:
                owned = await service.list_datasets_by_organization_id(owner)
                datasets += [(dataset.id, dataset.name) for dataset in owned]
            except MachineError as error:
                if error.kind is not ErrorKind.NOT_FOUND:
                    raise
        return datasets

    async def _retention(self, request: Request, owners: list[tuple[str, str]]) -> list[tuple[str, str, int, bool]]:
        """Return the retention period of each organization, and whether the caller may change it."""
        author = author_of(request)
        service, roles = DataService(self._cloud, author), RoleService(self._cloud, author)
        periods: list[tuple[str, str, int, bool]] = []
        for owner, name in owners:
            try:
                days = await service.retention(owner)
                periods.append((owner, name, days, await roles.owns(owner)))
            except MachineError as error:
                if error.kind is not ErrorKind.NOT_FOUND:
                    raise
        return periods


def _request(data_filter: m.Filter, query: DataQuery, limit: int) -> m.DataRequest:
    return m.DataRequest(data_filter, limit, query.after, m.Order.DESCENDING)


def _next(last: str, count: int, limit: int) -> str:
    return last if count == limit else ""
