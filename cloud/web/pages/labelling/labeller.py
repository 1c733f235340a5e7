"""`/datasets/<id>/label/<file>`: one picture after the other, with its tags and boxes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.rules import AccessRule, operator
from cloud.services.common.base import Cloud
from cloud.services.data.data import DataService
from cloud.services.data.datasets import DatasetService
from cloud.services.labelling.labelling import LabellingService
from cloud.values.limits import ANNOTATIONS
from cloud.web.common.site import author_of, check_size, redirect, render
from cloud.web.views.labelling_view import PictureQuery, annotations_json, picture_json, save_message

CONFLICT: Final = "another person has changed the same boxes in the meantime"


_DATASET: Final = operator(ObjectKind.DATASET, "dataset")

RULES: Final[Mapping[str, AccessRule]] = {
    "GET /datasets/{dataset}/label": _DATASET,
    "GET /datasets/{dataset}/label/{file}": _DATASET,
    "GET /datasets/{dataset}/pictures/{file}": _DATASET,
    "POST /datasets/{dataset}/pictures/{file}": _DATASET,
    "POST /datasets/{dataset}/pictures/{file}/remove": _DATASET,
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of the labeller and of the calls of its script."""
    pages = LabellerPages(cloud)
    path = "/datasets/{dataset}/pictures/{file}"
    return [
        Route("/datasets/{dataset}/label", pages.begin, methods=["GET"]),
        Route("/datasets/{dataset}/label/{file}", pages.label, methods=["GET"]),
        Route(path, pages.picture, methods=["GET"]),
        Route(path, pages.save, methods=["POST"]),
        Route(f"{path}/remove", pages.remove, methods=["POST"]),
    ]


class LabellerPages:
    """Endpoints of the labeller."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def _service(self, request: Request) -> tuple[LabellingService, str]:
        return LabellingService(self._cloud, author_of(request)), request.path_params["dataset"]

    async def begin(self, request: Request) -> Response:
        """`GET /datasets/<id>/label`: redirect to the first picture of a filter, or back if there is none."""
        service, dataset = self._service(request)
        query = PictureQuery.of(request.query_params)
        first = await service.first_picture(dataset, query.filter())
        path = f"/datasets/{quote(dataset, safe='')}" + (f"/label/{first}" if first else "")
        return redirect(f"{path}?{query.encoded()}")

    async def label(self, request: Request) -> Response:
        """`GET /datasets/<id>/label/<file>`."""
        service, dataset = self._service(request)
        query = PictureQuery.of(request.query_params)
        labelled = await service.picture(dataset, request.path_params["file"], query.filter())
        (record,) = await DatasetService(self._cloud, author_of(request)).list_datasets_by_ids([dataset])
        return render(request, "label.html", dataset=record, picture=labelled.picture, query=query)

    async def picture(self, request: Request) -> Response:
        """`GET /datasets/<id>/pictures/<file>`: a picture, its neighbours and the labels, as JSON.

        With `counts=no` it leaves out the labels, which takes less than half of the time: counting them reads the
        labels of all pictures.
        """
        service, dataset = self._service(request)
        chosen = PictureQuery.of(request.query_params).filter()
        labelled = await service.picture(dataset, request.path_params["file"], chosen)
        labels = None if request.query_params.get("counts") == "no" else await service.labels(dataset)
        return JSONResponse(picture_json(labelled, labels))

    async def save(self, request: Request) -> Response:
        """`POST /datasets/<id>/pictures/<file>`: save annotations; 409 with what is stored if they are in conflict."""
        service, dataset = self._service(request)
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            check_size(len(body), ANNOTATIONS)
        message = save_message(bytes(body))
        base, mine = message.base.annotations(), message.mine.annotations()
        result = await service.set_annotations(dataset, request.path_params["file"], base, mine)
        answer = {"annotations": annotations_json(result.annotations)}
        if result.conflicts:
            return JSONResponse({**answer, "error": CONFLICT, "conflicts": list(result.conflicts)}, 409)
        return JSONResponse({**answer, "changed": dict(result.changed)})

    async def remove(self, request: Request) -> Response:
        """`POST /datasets/<id>/pictures/<file>/remove`: remove a picture from the dataset; the file stays."""
        dataset, subject = request.path_params["dataset"], request.path_params["file"]
        service = DataService(self._cloud, author_of(request))
        await service.remove_binary_data_from_dataset_by_ids(dataset, binary_data_ids=[subject])
        return redirect(f"/datasets/{quote(dataset, safe='')}")
