"""`/training/new`: the form that trains a model from a dataset, and says beforehand what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from cloud.domain.labelling.palette import LabelCount
from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.rules import OF_FORM, AccessRule, owner
from cloud.services.common.base import Cloud
from cloud.services.data.datasets import DatasetService
from cloud.services.labelling.labelling import LabellingService
from cloud.services.training.training import MLTrainingService
from cloud.services.training.training_pages import TrainingPageService
from cloud.values.names import slug
from cloud.web.common.site import author_of, fields, redirect, render, status_of
from cloud.web.views.training_view import TYPES
from schema import ErrorKind, MachineError
from training.jobs import MIN_EXAMPLES, ModelType, shortfalls_of

NAMED: Final = 60  # characters of a suggested name


@dataclass(frozen=True, slots=True)
class Wish:
    """What a form asks for. `labels` is None before the first choice."""

    model_type: ModelType
    labels: tuple[str, ...] | None
    name: str
    version: str

    @classmethod
    def of(cls, form: Any) -> Wish:
        """Parse a form or query. INVALID for an unknown type."""
        text = str(form.get("type", ""))
        types = {str(int(model_type)): model_type for model_type in TYPES}
        if text and text not in types:
            raise MachineError(
                f"type={text[:40]!r} is not a type of model",
                kind=ErrorKind.INVALID,
                remedy=f"use one of {', '.join(types)}",
            )
        labels = tuple(label for label in form.getlist("label") if isinstance(label, str))
        return cls(
            types.get(text, ModelType.UNSPECIFIED),
            labels if labels or "chosen" in form else None,
            str(form.get("name", "")).strip(),
            str(form.get("version", "")).strip(),
        )


RULES: Final[Mapping[str, AccessRule]] = {
    "GET /training/new": owner(ObjectKind.DATASET, "dataset"),
    "POST /training": OF_FORM | "owners of the dataset's organization",
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of the form."""
    pages = SubmissionPages(cloud)
    return [
        Route("/training/new", pages.form, methods=["GET"]),
        Route("/training", pages.submit, methods=["POST"]),
    ]


class SubmissionPages:
    """Endpoints of the form."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def form(self, request: Request) -> Response:
        """`GET /training/new?dataset=&type=&label=&name=&version=`."""
        query = request.query_params
        return await self._form(request, query.get("dataset", ""), Wish.of(query))

    async def _form(self, request: Request, dataset: str, wish: Wish, error: MachineError | None = None) -> Response:
        author = author_of(request)
        service = TrainingPageService(self._cloud, author)
        (record,) = await DatasetService(self._cloud, author).list_datasets_by_ids([dataset])
        counts = await LabellingService(self._cloud, author).labels(dataset)
        model_type = wish.model_type or _likely(counts)
        chosen = _suggested(counts, model_type) if wish.labels is None else wish.labels
        name = wish.name or slug(record.name)[:NAMED]
        version = wish.version or await service.next_version(record.organization_id, name)
        missing = await service.examination(dataset, model_type, chosen)
        return render(
            request,
            "train.html",
            status_of(error) if error else 200,
            dataset=record,
            types=list(TYPES.items()),
            model_type=model_type,
            labels=[(label, label.name in chosen, _examples(label, model_type)) for label in counts],
            needed=MIN_EXAMPLES,
            name=name,
            version=version,
            missing=missing,
            shortfalls=shortfalls_of(str(missing)),
            error=error,
        )

    async def submit(self, request: Request) -> Response:
        """`POST /training` with the fields of the form."""
        form = await fields(request)
        dataset, wish, author = str(form.get("dataset", "")), Wish.of(form), author_of(request)
        (record,) = await DatasetService(self._cloud, author).list_datasets_by_ids([dataset])
        try:
            job = await MLTrainingService(self._cloud, author).submit_training_job(
                record.organization_id,
                dataset,
                wish.name,
                wish.model_type,
                wish.version,
                tags=wish.labels or (),
            )
        except MachineError as error:
            if error.kind in (ErrorKind.PERMISSION, ErrorKind.NOT_FOUND):
                raise
            return await self._form(request, dataset, wish, error)
        return redirect(f"/training/{job}")


def _likely(counts: list[LabelCount]) -> ModelType:
    """Return the type for which a dataset has most labels."""
    boxes, tagged = sum(label.boxes for label in counts), sum(label.tagged for label in counts)
    return ModelType.OBJECT_DETECTION if boxes > tagged else ModelType.SINGLE_LABEL_CLASSIFICATION


def _suggested(counts: list[LabelCount], model_type: ModelType) -> tuple[str, ...]:
    """Return the labels that people offer, or else those that have enough pictures."""
    offered = [label.name for label in counts if label.listed]
    return tuple(offered or [label.name for label in counts if _examples(label, model_type) >= MIN_EXAMPLES])


def _examples(label: LabelCount, model_type: ModelType) -> int:
    return label.boxed if model_type is ModelType.OBJECT_DETECTION else label.tagged
