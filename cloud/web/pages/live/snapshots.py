"""`/machines/<part>/snapshots`: pictures that a person saves on the tab Control, into a dataset if they want."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.rules import AccessRule, machine, operator
from cloud.services.common.base import Cloud
from cloud.services.data.contents import UploadContents
from cloud.services.data.data_messages import DataType, SensorData, SensorMetadata, UploadMetadata
from cloud.services.data.datasets import DatasetService
from cloud.services.data.datasync import DataSyncService
from cloud.services.machines.fleet import FleetService
from cloud.values.limits import FORM
from cloud.web.common.site import author_of, body_of
from schema import ErrorKind, MachineError

JPEG: Final = b"\xff\xd8\xff"  # the first bytes of a JPEG file: ISO/IEC 10918-1, B.1.1.3


RULES: Final[Mapping[str, AccessRule]] = {
    "GET /machines/{id}/snapshots": operator(ObjectKind.PART, "id") | "datasets: operators of the organization",
    "POST /machines/{id}/snapshots": machine("id"),
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes."""

    async def datasets(request: Request) -> Response:
        """`GET`: the datasets into which a picture of this machine can go."""
        author = author_of(request)
        part = await FleetService(cloud, author).part(request.path_params["id"])
        records = await DatasetService(cloud, author).list_datasets_by_organization_id(part.organization_id)
        return JSONResponse([{"id": record.id, "name": record.name} for record in records])

    async def store(request: Request) -> Response:
        """`POST ?component=NAME&dataset=ID` with a JPEG: store it as captured now, in the dataset if one is given."""
        author, subject, asked = author_of(request), request.path_params["id"], request.query_params
        picture = await body_of(request, FORM)
        if not picture.startswith(JPEG):
            raise MachineError("the picture is not a JPEG", kind=ErrorKind.INVALID)
        metadata = UploadMetadata(
            part_id=subject,
            component_type="rdk:component:camera",
            component_name=asked.get("component", ""),
            method_name="GetImages",
            type=DataType.BINARY_SENSOR,
            file_extension=".jpg",
            dataset_ids=[dataset] if (dataset := asked.get("dataset", "")) else [],
            mime_type="image/jpeg",
        )
        now = cloud.clock()
        item = SensorData(SensorMetadata(time_requested=now, time_received=now), binary=picture)
        uploaded = await DataSyncService(cloud, author).data_capture_upload(metadata, UploadContents([item]))
        return JSONResponse({"id": uploaded.binary_data_id})

    path = "/machines/{id}/snapshots"
    return [Route(path, datasets, methods=["GET"]), Route(path, store, methods=["POST"])]
