"""`/training`: jobs, one job live, and its report."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final
from urllib.parse import quote

import trio
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from cloud.documents.pieces import LARGE
from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.rules import AccessRule, owner, signed_in
from cloud.domain.training import jobs
from cloud.domain.training.jobs import JobRecord
from cloud.services.app import AppService
from cloud.services.common.base import Cloud
from cloud.services.training.training import MLTrainingService
from cloud.services.training.training_pages import TrainingPageService
from cloud.store.events import EVERY
from cloud.values.author import Author
from cloud.web.common.live import LivePage, live, news_of
from cloud.web.common.site import author_of, offload, redirect, render, render_macro
from cloud.web.views import training_view as views
from rpc.pages import Patcher, Piece
from schema import ErrorKind, MachineError

PAGE: Final = 50  # jobs per page
PAUSE: Final = 0.5  # seconds between two updates of the page of a job
LIST_PAUSE: Final = 1.0  # seconds between two reads of the list


_JOB: Final = owner(ObjectKind.JOB, "id")

RULES: Final[Mapping[str, AccessRule]] = {
    "GET /training": signed_in("jobs of organizations that the caller owns"),
    "WS /live/training": signed_in("the same"),
    "GET /training/{id}": _JOB,
    "GET /training/{id}/report": _JOB,
    "GET /training/{id}/scores": _JOB,
    "POST /training/{id}/{action}": _JOB,
    "WS /live/training/{id}": _JOB,
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of the list, of a job and of its report."""
    pages = JobPages(cloud)
    return [
        Route("/training", pages.index, methods=["GET"]),
        Route("/training/{id}", pages.job, methods=["GET"]),
        Route("/training/{id}/report", pages.report, methods=["GET"]),
        Route("/training/{id}/scores", pages.scores, methods=["GET"]),
        Route("/training/{id}/{action}", pages.act, methods=["POST"]),
        WebSocketRoute("/live/training", pages.live_list),
        WebSocketRoute("/live/training/{id}", pages.live),
    ]


class JobPages:
    """Endpoints of jobs."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def _service(self, request: Request) -> tuple[TrainingPageService, str]:
        return TrainingPageService(self._cloud, author_of(request)), request.path_params["id"]

    async def index(self, request: Request) -> Response:
        """`GET /training?before=`."""
        before = request.query_params.get("before", "")
        number = int(before) if before.isascii() and before.isdigit() and len(before) < 19 else 0
        listed = await self._listed(author_of(request), number)
        return render(
            request,
            "training.html",
            403 if listed is None else 200,
            jobs=[views.listed_job(job) for job in listed or ()],
            refused=listed is None,
            older=listed[-1].number if listed and len(listed) >= PAGE else 0,
            live="/live/training" if listed is not None and not number else "",
        )

    async def _listed(self, author: Author, before: int) -> list[JobRecord] | None:
        """Return a page of the jobs of the caller's organizations; None if the caller owns none of them."""
        service, listed = TrainingPageService(self._cloud, author), list[JobRecord]()
        owned = False
        for organization in await AppService(self._cloud, author).list_organizations():
            try:
                listed += await service.jobs(organization.id, before, PAGE)
                owned = True
            except MachineError as error:
                if error.kind not in (ErrorKind.NOT_FOUND, ErrorKind.PERMISSION):
                    raise
        return listed if owned else None

    async def live_list(self, socket: WebSocket) -> None:
        """Send the first page of the list as states change."""
        await live(self._cloud, socket, self._follow_list)

    async def _follow_list(self, page: LivePage) -> None:
        patcher = Patcher(lambda piece: render_macro("training_parts.html", piece.macro, *piece.arguments))
        async with news_of(self._cloud, (jobs.TOPIC, EVERY)) as news:
            while True:
                rows = [views.listed_job(job) for job in await self._listed(page.author, 0) or ()]
                if patch := patcher.patch([Piece("jobs", "job_list", (rows,), rows)]):
                    await page.send(patch=patch)
                await trio.sleep(LIST_PAUSE)
                await news.next()

    async def job(self, request: Request) -> Response:
        """`GET /training/<id>`."""
        return await self._job(request)

    async def _job(self, request: Request, error: MachineError | None = None) -> Response:
        service, subject = self._service(request)
        seen = await service.seen_job(subject)
        events = await service.events(subject, None)
        return render(
            request,
            "job.html",
            409 if error else 200,
            job=seen.job,
            dataset=seen.dataset,
            type=views.type_text(seen.job),
            state=views.shown_job(seen, self._cloud.clock()),
            reported=seen.reported,
            curves=views.curves(seen.metrics),
            lines=views.lines(events),
            days=jobs.LOGS.days,
            error=error,
            live=f"/live/training/{quote(subject, safe='')}?after={events[-1].number if events else 0}",
        )

    async def act(self, request: Request) -> Response:
        """`POST /training/<id>/cancel|delete`."""
        subject, action = request.path_params["id"], request.path_params["action"]
        service = MLTrainingService(self._cloud, author_of(request))
        try:
            if action == "cancel":
                await service.cancel_training_job(subject)
            elif action == "delete":
                await service.delete_completed_training_job(subject)
                return redirect("/training")
            else:
                raise MachineError(f"there is no action {action[:40]!r} for jobs", kind=ErrorKind.NOT_FOUND)
        except MachineError as error:
            if error.kind is not ErrorKind.PRECONDITION:
                raise
            return await self._job(request, error)
        return redirect(f"/training/{quote(subject, safe='')}")

    # ---- live

    async def live(self, socket: WebSocket) -> None:
        """Send state, curves and log lines as they change; `after` is the last event that the page has."""
        text = socket.query_params.get("since") or socket.query_params.get("after", "")
        after = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0
        await live(self._cloud, socket, partial(self._follow, socket.path_params["id"], after))

    async def _follow(self, subject: str, after: int, page: LivePage) -> None:
        patcher = Patcher(lambda piece: render_macro("training_parts.html", piece.macro, *piece.arguments))
        service = TrainingPageService(self._cloud, page.author)
        async with news_of(self._cloud, (jobs.EVENTS, subject), (jobs.TOPIC, subject)) as news:
            while True:
                events = await service.events(subject, after)
                after = events[-1].number if events else after
                patch = patcher.patch(views.pieces(await service.seen_job(subject), self._cloud.clock()))
                log = [render_macro("training_parts.html", "log_line", line) for line in views.lines(events)]
                if patch or log:
                    await page.send(**({"patch": patch} if patch else {}), **({"log": log} if log else {}))
                if len(events) < jobs.PAGE:
                    await trio.sleep(PAUSE)
                    await news.next()

    # ---- the report

    async def report(self, request: Request) -> Response:
        """`GET /training/<id>/report`."""
        service, subject = self._service(request)
        reported = await service.report(subject)
        report, job = reported.report, reported.job
        if report is None:
            raise MachineError(
                "this job has no report", kind=ErrorKind.NOT_FOUND, remedy="only models of trainers have one"
            )
        figures = views.headline(report)
        return render(
            request,
            "report.html",
            job=job,
            report=report,
            figures=figures,
            held_out=report.test.pictures > 0,
            matrix=views.matrix(report, figures),
            mistakes=views.mistakes((report.test, report.cross_validation), reported.present),
            scored=views.thresholds(report),
        )

    async def scores(self, request: Request) -> Response:
        """`GET /training/<id>/scores`: probabilities for the slider, as JSON."""
        service, subject = self._service(request)
        report = (await service.report(subject)).report
        if report is None:
            raise MachineError("this job has no report", kind=ErrorKind.NOT_FOUND)
        return await offload(request, LARGE, lambda: JSONResponse(views.scores_json(report)))
