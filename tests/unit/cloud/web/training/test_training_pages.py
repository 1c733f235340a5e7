"""The pages of training, with an engine that does what a test says, through the guard."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trio

from cloud.domain.organizations.first import create_owner
from cloud.domain.training.jobs import JobRecord, NewJob, StoredJobEvent
from cloud.server.memory import MemoryCloud
from cloud.services.training.runner import report_in
from cloud.services.training.training_pages import SeenJob
from cloud.values.author import KEY, Author
from cloud.web.views import training_view as views
from cloud.web.views.plots import HEIGHT, MAX_POINTS, WIDTH, curve
from tests.unit.cloud.captured import DATA, SETS, START
from tests.unit.cloud.pages import HOST, post, signed_in
from tests.unit.cloud.services.training.test_runner import World, hang
from tests.unit.cloud.services.training.world import able, tenant
from tests.unit.cloud.web.test_web_fleet import key_at
from tests.unit.runtime.parts.web.client import HTML, Browser
from training.engine.port import Order, RunOutcome, Sink
from training.jobs.events import JobEvent, Log, Metric, Progress, Status
from training.jobs.lifecycle import JobState
from training.jobs.report import Report

ORIGIN = {"origin": f"http://{HOST}"}


@pytest.fixture
async def world(cloud: MemoryCloud, tmp_path: Path) -> World:
    us = await tenant(able(cloud))
    await us.add("ok")
    await us.add("bad", number=9)
    return World(us, tmp_path)


@pytest.fixture
async def page(world: World) -> Browser:
    return await signed_in(world.us.cloud)


async def get(page: Browser, path: str) -> str:
    reply = await page.send("GET", path, HTML)
    assert reply.status == 200, reply.text
    return reply.text


def figures(files: list[str], label: str = "ok") -> dict[str, Any]:
    rows = [{"id": files[0], "labels": ["ok"], "predicted": ["bad"], "probabilities": {"ok": 0.1, "bad": 0.9}}]
    return {
        "pictures": 4,
        "accuracy": 0.75,
        "accuracy_of_the_most_frequent_answer": 0.5,
        "labels": {label: {"pictures": 2, "precision": 1.0, "recall": 0.5}},
        "confusion": [[1, 1], [0, 2]],
        "worst_mistakes": rows,
        "scores": [{"id": file, "labels": ["ok"], "probabilities": [0.1, 0.9]} for file in files[:2]],
    }


def writing(report: Mapping[str, Any] | bytes) -> Any:
    """Return a program that writes a model and a report."""

    async def program(order: Order, sink: Sink) -> RunOutcome:
        await sink([Log("<b>hello</b>"), Metric("loss", 0.5, 0), Metric("loss", 0.25, 1), Progress(1, 2)])
        order.output.mkdir()
        (order.output / "model.onnx").write_bytes(b"model")
        content = report if isinstance(report, bytes) else json.dumps(report).encode()
        (order.output / "report.json").write_bytes(content)
        return RunOutcome()

    return program


async def completed(world: World, report: Mapping[str, Any] | bytes, version: str = "1") -> str:
    async with world.running(writing(report)):
        subject = await world.us.submit(model_version=version)
        await world.until(subject, "COMPLETED")
    return subject


# ---- submission


async def test_the_form_says_beforehand_what_the_call_would_refuse(world: World, page: Browser) -> None:
    us = world.us
    path = f"/training/new?dataset={us.dataset}&chosen=1&label=ok&label=bad"
    reason = "the label &#39;bad&#39; has 9 pictures, 1 more needed"
    text = await get(page, path)
    assert f"<li>{reason}</li>" in text
    assert f'href="/datasets/{us.dataset}/label?show=unlabelled"' in text
    form = {"dataset": us.dataset, "type": "1", "name": "parts", "version": "7", "chosen": "1"}
    body = "&".join([*(f"{key}={value}" for key, value in form.items()), "label=ok", "label=bad"]).encode()
    reply = await page.send("POST", "/training", {**HTML, **ORIGIN}, body)
    assert (reply.status, reason in reply.text) == (409, True)
    assert 'value="7"' in reply.text
    await us.add("bad", number=1)
    assert "Ready to train" in await get(page, path)
    reply = await page.send("POST", "/training", {**HTML, **ORIGIN}, body)
    assert reply.status == 303, reply.text
    assert "parts 7" in await get(page, reply.headers["location"])
    assert "parts 7" in await get(page, "/training")
    reply = await page.send("POST", "/training", {**HTML, **ORIGIN}, body)
    assert (reply.status, "belongs to the job" in reply.text) == (409, True)
    assert 'name="version" type="text" value="2"' in await get(page, f"{path}&name=parts")


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("type=3&label=ok", "0 of 19 pictures are labelled"),
        ("type=2", "needs 2 or more labels"),
        ("label=ok", "the job names 1"),
        ("label=ok&label=ok", "given more than once"),
        ("label=ok&label=missing", "&#39;missing&#39; has 0 pictures, 10 more needed"),
    ],
)
async def test_each_refusal_is_on_the_form(world: World, page: Browser, query: str, text: str) -> None:
    assert text in await get(page, f"/training/new?dataset={world.us.dataset}&chosen=1&{query}")


async def test_an_unknown_type_is_refused(world: World, page: Browser) -> None:
    reply = await page.send("GET", f"/training/new?dataset={world.us.dataset}&type=9", HTML)
    assert reply.status == 400


# ---- a job


async def test_a_job_is_shown_live_until_it_ends(world: World, page: Browser) -> None:
    await world.us.add("bad", number=1)
    begin, end = trio.Event(), trio.Event()

    async def program(order: Order, sink: Sink) -> RunOutcome:
        await begin.wait()
        await sink([Progress(1, 2), Log("early")])
        await end.wait()
        return await writing({"labels": ["ok", "bad"]})(order, sink)

    async with world.running(program):
        subject = await world.us.submit()
        await world.until(subject, "IN_PROGRESS")
        text = await get(page, f"/training/{subject}")
        match = re.search(r'data-live="([^"]+)"', text)
        assert match is not None
        assert "Cancel the job" in text
        async with page.live(match[1], ORIGIN) as live:
            with trio.fail_after(20):
                assert ">training</span>" in (await live.patch())["job-state"]
                begin.set()
                seen, log = "", ""
                while "1 of 2 done" not in seen or "early" not in log:
                    message = await live.next()
                    seen += "".join(message.get("patch", {}).values())
                    log += "".join(message.get("log", []))
                end.set()
                while ">completed</span>" not in seen or "completed" not in log:
                    message = await live.next()
                    seen += "".join(message.get("patch", {}).values())
                    log += "".join(message.get("log", []))
    assert "loss <strong>0.25</strong>" in seen
    assert "&lt;b&gt;hello" in log
    assert "<b>" not in log
    assert [log.count(line) for line in ("early", "&lt;b&gt;hello")] == [1, 1]
    assert "Report</a>" in seen
    text = await get(page, f"/training/{subject}")
    assert "Cancel the job" not in text
    assert "&lt;b&gt;hello" in text


async def test_the_list_of_jobs_is_live(world: World, page: Browser) -> None:
    await world.us.add("bad", number=1)
    assert "Nothing has been trained yet" in await get(page, "/training")
    async with page.live("/live/training", ORIGIN) as live:
        with trio.fail_after(20):
            assert "Nothing has been trained yet" in (await live.patch())["jobs"]
            subject = await world.us.submit()
            assert ">waiting</span>" in (await live.patch())["jobs"]
            await post(page, f"/training/{subject}/cancel")
            assert ">canceled</span>" in (await live.patch())["jobs"]
    for number in range(50):
        await post(page, f"/training/{await world.us.submit(model_version=str(number + 2))}/cancel")
    text = await get(page, "/training")
    assert "parts 51<" in text
    assert "parts 1<" not in text
    match = re.search(r'href="(/training\?before=\d+)"', text)
    assert match is not None
    text = await get(page, match[1])
    assert "parts 1<" in text
    assert "data-live" not in text


async def test_a_job_is_canceled_and_deleted(world: World, page: Browser) -> None:
    await world.us.add("bad", number=1)
    async with world.running(hang):
        subject = await world.us.submit()
        await world.until_logged(subject, "hanging")
        assert (await post(page, f"/training/{subject}/delete")).status == 409
        assert (await post(page, f"/training/{subject}/cancel")).headers["location"] == f"/training/{subject}"
        await world.until(subject, "CANCELED")
    reply = await post(page, f"/training/{subject}/cancel")
    assert (reply.status, "cannot be canceled" in reply.text) == (409, True)
    assert (await post(page, f"/training/{subject}/other")).status == 404
    assert (await post(page, f"/training/{subject}/delete")).headers["location"] == "/training"
    assert (await page.send("GET", f"/training/{subject}", HTML)).status == 404


def seen_job(state: JobState, *events: JobEvent, begun: int = 0) -> SeenJob:
    task = NewJob("o", "d", "m", "1")
    job = JobRecord(1, "j", task, Author(KEY, "k"), state, "", START, START, START, None, "", 1, "")
    happened = [StoredJobEvent(number, START + timedelta(seconds=10), event) for number, event in enumerate(events, 1)]
    since = StoredJobEvent(0, START + timedelta(seconds=begun), Status(state))
    return SeenJob(job, "", happened[-1] if happened else None, since, [], reported=False)


def test_the_time_that_remains_is_estimated_from_the_progress() -> None:
    now = START + timedelta(seconds=10)
    assert views.shown_job(seen_job(JobState.IN_PROGRESS, Progress(1, 4)), now).remaining == "30 s"
    assert (
        views.shown_job(seen_job(JobState.IN_PROGRESS, Progress(1, 4)), now + timedelta(seconds=5)).remaining == "25 s"
    )
    assert views.shown_job(seen_job(JobState.IN_PROGRESS, Progress(1, 4), begun=5), now).remaining == "15 s"
    for seen in (
        seen_job(JobState.IN_PROGRESS),
        seen_job(JobState.IN_PROGRESS, Progress(0, 4)),
        seen_job(JobState.IN_PROGRESS, Progress(4, 4)),
        seen_job(JobState.IN_PROGRESS, Progress(1, 4), begun=10),
        seen_job(JobState.PENDING, Progress(1, 4)),
    ):
        assert views.shown_job(seen, now).remaining == ""


def test_curves_of_metrics() -> None:
    line = curve("loss", [(0, 4.0), (1, float("nan")), (2, 2.0), (2, 0.0), (4, 2.0)])
    assert line is not None
    assert line.points == f"0.0,0.0 {WIDTH / 2},{HEIGHT}.0 {WIDTH}.0,{HEIGHT / 2}"
    assert (line.low, line.high, line.last, line.count) == (0.0, 4.0, 2.0, 3)
    long = curve("loss", [(step, float(step % 10) if step != 7001 else 99.0) for step in range(10_000)])
    assert long is not None
    assert len(long.points.split()) <= MAX_POINTS
    assert ",0.0" in long.points  # the extreme is kept
    assert curve("loss", [(0, float("inf"))]) is None
    metrics = [StoredJobEvent(number, START, Metric(f"m{number}", 1.0)) for number in range(50)]
    assert len(views.curves(metrics)) == views.MAX_CURVES


# ---- the report


async def test_the_report_and_the_suspicious_pictures(world: World, page: Browser) -> None:
    us = world.us
    await us.add("bad", number=1)
    files = await us.uploads.ids(dataset_id=us.dataset)
    report = {
        "model_type": "single_label_classification", "labels": ["ok", "bad"], "remarks": ["<i>weak</i>"],
        "test": figures(files), "cross_validation": figures(files[1:]), "pictures": {"used": 20, "training": files},
    }  # fmt: skip
    subject = await completed(world, report)
    text = await get(page, f"/training/{subject}/report")
    assert "&lt;i&gt;weak" in text
    assert "75 %" in text
    assert f'href="/datasets/{us.dataset}/label/{files[0]}"' in text
    assert "model: bad (0.90)" in text
    scores = (await page.send("GET", f"/training/{subject}/scores", {"accept": "application/json"})).json()
    assert scores["labels"] == ["ok", "bad"]
    assert scores["exclusive"] is True
    assert scores["sets"]["test"] == [[[0], [0.1, 0.9]]] * 2
    assert scores["counts"] == []
    path = f"/datasets/{us.dataset}"
    text = await get(page, f"{path}?show=suspicious")
    assert text.count("<figure") == 2
    assert "The newest model says bad (score 0.90)." in text
    headers = {"accept": "application/json", **ORIGIN}
    state = {"tags": ["ok"], "boxes": []}
    body = json.dumps({"base": state, "mine": state}).encode()
    assert (await page.send("POST", f"{path}/pictures/{files[0]}", headers, body)).status == 200  # the labels are right
    assert (await get(page, f"{path}?show=suspicious")).count("<figure") == 1
    await us.call(DATA, "delete_binary_data_by_ids", binary_data_ids=[files[1]])
    assert (await get(page, f"{path}?show=suspicious")).count("<figure") == 0
    await us.call(DATA, "remove_binary_data_from_dataset_by_ids", binary_data_ids=[files[0]], dataset_id=us.dataset)
    assert (await get(page, f"/training/{subject}/report")).count("no longer in the dataset") == 2
    await us.call(SETS, "delete_dataset", id=us.dataset)
    assert "a deleted dataset" in await get(page, f"/training/{subject}")


async def test_the_report_of_a_detector(world: World, page: Browser) -> None:
    us = world.us
    await us.add("bad", number=1)
    files = await us.uploads.ids(dataset_id=us.dataset)
    mistakes = [
        {
            "id": files[0], "labels": ["ok"], "predicted": ["bad", "ok"], "missed": 2, "wrong": 0.8,
            "boxes": [{"label": "<ok>", "x_min": 0.1, "y_min": 0.2, "x_max": 0.3, "y_max": 0.6}] * 99,
            "detections": [{"label": "bad", "x_min": -1, "y_min": 0.5, "x_max": 7, "y_max": 0.25, "score": 0.8}],
        },
        {"id": files[1], "labels": ["ok"], "missed": 1, "wrong": 0.0},
    ]  # fmt: skip
    counts = {"answers": [5] * 60 + [2] * 41, "right": [3] * 60 + [2] * 41}
    labels = {
        "ok": {"boxes": 7, "AP50": 0.81, "AP75": 0.42, **counts},
        "bad": {"boxes": 1, "answers": [1], "right": []},
    }
    test = {"pictures": 4, "mAP50": 0.83, "mAP75": 0.44, "labels": labels, "worst_mistakes": mistakes}
    subject = await completed(world, {"model_type": "object_detection", "labels": ["ok", "bad"], "test": test})
    text = await get(page, f"/training/{subject}/report")
    assert [share for share in ("83 %", "44 %", "81 %", "42 %") if share not in text] == []
    assert "Accuracy" not in text
    assert "2 missed, model: bad and ok (0.80)" in text
    assert "1 missed</span>" in text
    place = 'x="10.00" y="20.00" width="20.00" height="40.00"><title>&lt;ok&gt;</title>'
    assert text.count(f"<rect {place}") == views.BOXES
    edges = 'x="0.00" y="50.00" width="100.00" height="0.00"'  # what is outside is cut off
    assert f'<rect class="said" {edges}><title>model: bad (0.80)</title>' in text
    assert "data-threshold" in text
    scores = (await page.send("GET", f"/training/{subject}/scores", {"accept": "application/json"})).json()
    assert scores["pictures"] == 4
    assert scores["counts"] == [{"boxes": 7, **counts}, {"boxes": 1, "answers": [0] * 101, "right": [0] * 101}]
    text = await get(page, f"/models/{us.organization}/parts")
    assert "83 %, 44 %" in text
    assert "81 %, 42 %" in text
    assert "Accuracy" not in text
    assert (await get(page, f"/datasets/{us.dataset}?show=suspicious")).count("<figure") == 1


async def test_a_newer_model_replaces_the_suspicious_pictures(world: World, page: Browser) -> None:
    us = world.us
    await us.add("bad", number=1)
    files = await us.uploads.ids(dataset_id=us.dataset)
    await completed(world, {"labels": ["ok", "bad"], "test": figures(files)})
    await completed(world, {"labels": ["ok", "bad"], "test": figures(files[2:])}, "2")
    text = await get(page, f"/datasets/{us.dataset}?show=suspicious")
    assert files[2] in text
    assert files[0] not in text


@pytest.mark.parametrize("report", [b"", b"no", b'{"labels": 1}', b"x" * (5 << 20)])
async def test_a_job_without_a_readable_report_completes(world: World, page: Browser, report: bytes) -> None:
    await world.us.add("bad", number=1)
    subject = await completed(world, report)
    assert "Report</a>" not in await get(page, f"/training/{subject}")
    reply = await page.send("GET", f"/training/{subject}/report", HTML)
    assert (reply.status, "has no report" in reply.text) == (404, True)


def test_a_report_is_read_from_regular_files_only(tmp_path: Path) -> None:
    secret, output = tmp_path / "secret.json", tmp_path / "output"
    secret.write_text('{"remarks": ["secret"]}')
    output.mkdir()
    assert report_in(output) is None
    report = output / "report.json"
    report.symlink_to(secret)
    assert report_in(output) is None
    report.unlink()
    os.mkfifo(report)
    assert report_in(output) is None
    report.unlink()
    report.mkdir()
    assert report_in(output) is None
    report.rmdir()
    report.write_bytes(secret.read_bytes())
    assert report_in(output) == Report(remarks=["secret"])


def test_a_malformed_or_large_confusion_matrix_is_left_out() -> None:
    labels = [f"l{number}" for number in range(views.MAX_LABELS + 1)]
    for report, rows in (
        (Report(labels=["a", "b"]), [[1, 2]]),
        (Report(labels=["a", "b"]), [[1, 2], [1]]),
        (Report(labels=[]), []),
        (Report(labels=labels), [[0] * len(labels)] * len(labels)),
    ):
        assert views.matrix(report, views.Figures(confusion=rows)) is None
    shown = views.matrix(Report(labels=["a", "b"]), views.Figures(confusion=[[3, 1], [0, 0]]))
    assert shown is not None
    assert shown.rows == [("a", [(3, 0.75), (1, 0.25)]), ("b", [(0, 0.0), (0, 0.0)])]


# ---- models


async def test_versions_side_by_side_and_their_use_on_a_machine(world: World, page: Browser) -> None:
    us = world.us
    await us.add("bad", number=1)
    files = await us.uploads.ids(dataset_id=us.dataset)
    await completed(world, {"labels": ["ok", "bad"], "test": figures(files)})
    await completed(world, b"", "2")
    path = f"/models/{us.organization}/parts"
    text = await get(page, path)
    assert text.index(">2</a>") < text.index(">1</a>")
    assert "100 %, 50 %" in text
    part = us.uploads.part
    form = {"action": "use", "package": f"{us.organization}/parts", "version": "1", "part": part}
    reply = await post(page, f"{path}/use", **form)
    assert (reply.status, reply.headers["location"]) == (307, f"/machines/{part}/config")
    reply = await post(page, reply.headers["location"], **form)
    assert "Nothing is saved yet" in reply.text
    assert "parts-model" in reply.text
    before = await us.call("viam.app.v1.AppService", "get_robot_part", id=part)
    assert "packages" not in before["part"]["robot_config"]
    assert (await post(page, f"{path}/use", **{**form, "part": ""})).status == 400
    assert (await post(page, f"/machines/{part}/config", **{**form, "version": ""})).status == 400
    operator = await signed_in(us.cloud, await key_at(us.cloud, "organization", us.organization))
    assert (await post(operator, f"/machines/{part}/config", **form)).status == 403
    assert (await page.send("GET", f"/models/{us.organization}/other", HTML)).status == 404


# ---- permissions


async def test_only_owners_of_the_organization_see_its_training(world: World, page: Browser) -> None:
    us = world.us
    await us.add("bad", number=1)
    subject = await completed(world, {"labels": ["ok", "bad"]})
    cloud = us.cloud
    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", datetime.now(UTC)))
    stranger = await signed_in(cloud, (other.id, other.key))
    operator = await signed_in(cloud, await key_at(cloud, "organization", us.organization))
    paths = [
        f"/training/new?dataset={us.dataset}", f"/training/{subject}", f"/training/{subject}/report",
        f"/training/{subject}/scores", f"/models/{us.organization}/parts",
    ]  # fmt: skip
    for visitor, status in ((stranger, 404), (operator, 403)):
        for path in paths:
            assert (await visitor.send("GET", path, HTML)).status == status, path
        for action in ("cancel", "delete"):
            assert (await post(visitor, f"/training/{subject}/{action}")).status == status
        assert (await post(visitor, f"/models/{us.organization}/parts/use", part="x")).status == status
        assert "parts 1" not in (await visitor.send("GET", "/training", HTML)).text
        form = {"dataset": us.dataset, "type": "1", "name": "parts", "version": "9", "label": "ok"}
        assert (await post(visitor, "/training", **form)).status == status
        async with visitor.live("/live/training", ORIGIN) as live:
            assert "parts 1" not in (await live.patch())["jobs"]
        async with visitor.live(f"/live/training/{subject}?after=0", ORIGIN) as live:
            with trio.fail_after(20):
                assert (await live.message())["type"] == "websocket.close"
    assert (await page.send("GET", f"/training/{subject}", HTML)).status == 200
