"""Jobs in the client: events across lost connections, the end of a job, and its model."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rpc.client.blocking import run_blocking
from schema.errors import ErrorKind, MachineError
from support.foreign.tar import Bounds
from training import JobState, ModelType, TrainingCanceled, TrainingFailed
from training.client.client import TrainingClient
from training.client.records import EventsPage, Numbered, TrainingJob, event_of
from training.jobs.events import JobEvent, Log, Progress, Status

NOW = datetime(2026, 1, 1, tzinfo=UTC)
JOB = TrainingJob(
    "j",
    "o",
    "d",
    "parts",
    "1",
    ModelType.SINGLE_LABEL_CLASSIFICATION,
    ("a",),
    JobState.COMPLETED,
    "",
    "o/parts",
    NOW,
    NOW,
)
LOST = MachineError("the connection was lost", kind=ErrorKind.UNAVAILABLE)


class Cloud(TrainingClient):
    """A cloud with one job; `failing` says for each call whether its answer is lost."""

    def __init__(self, events: list[JobEvent], state: JobState = JobState.COMPLETED, reason: str = "") -> None:
        self.stored = [Numbered(3 * n + 1, NOW + timedelta(seconds=n), event) for n, event in enumerate(events)]
        self.state, self.reason = state, reason
        self.failing: Callable[[int], bool] = lambda call: False
        self.calls = 0
        self.pauses: list[float] = []
        self.content = b""
        self.checksum = ""
        super().__init__(self, self)  # type: ignore[arg-type]

    async def events_page(self, job: str, after: int = 0, *, wait: int = 20) -> EventsPage:
        self.calls += 1
        if self.failing(self.calls):
            raise LOST
        page = [entry for entry in self.stored if entry.number > after][:2]
        ended = not page or page[-1] is self.stored[-1]
        return EventsPage(page, page[-1].number if page else after, self.state, self.reason, ended)

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)

    async def get_training_job(self, job: str) -> TrainingJob:
        return replace(JOB, state=self.state)

    async def call(self, service: str, method: str, **fields: Any) -> Any:
        assert (method, fields["id"], fields["version"]) == ("get_package", "o/parts", "1")
        return {"url": "http://x/y", "checksum": self.checksum or hashlib.sha256(self.content).hexdigest()}

    async def get(self, url: str) -> AsyncIterator[bytes]:
        for start in range(0, len(self.content), 100):
            yield self.content[start : start + 100]

    async def work(self, function: Callable[[], Any]) -> Any:
        return function()


def followed(cloud: Cloud, after: int = 0, **more: float) -> list[int]:
    async def work() -> list[int]:
        return [entry.number async for entry in cloud.job("j").numbered_events(after, **more)]

    return run_blocking(work())


EVENTS: list[JobEvent] = [Log(str(number)) for number in range(7)]
NUMBERS = [3 * number + 1 for number in range(7)]


@pytest.mark.parametrize("lost", [lambda call: call % 2 == 1, lambda call: 1 < call < 9, lambda call: call == 2])
def test_lost_connections_lose_and_repeat_nothing(lost: Callable[[int], bool]) -> None:
    cloud = Cloud(EVENTS)
    cloud.failing = lost
    assert followed(cloud) == NUMBERS
    assert cloud.pauses[0] == 0.5
    assert max(cloud.pauses) <= 10


def test_a_reader_continues_behind_a_number() -> None:
    assert followed(Cloud(EVENTS), after=NUMBERS[2]) == NUMBERS[3:]
    assert followed(Cloud(EVENTS), after=NUMBERS[-1]) == []


def test_patience_has_an_end() -> None:
    cloud = Cloud(EVENTS)
    cloud.failing = lambda call: True
    with pytest.raises(MachineError, match="lost"):
        followed(cloud, patience=0)
    assert cloud.calls == 1


def test_an_error_that_will_not_pass_is_raised_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "LOST", MachineError("no such job", kind=ErrorKind.NOT_FOUND))
    cloud = Cloud(EVENTS)
    cloud.failing = lambda call: call < 5
    with pytest.raises(MachineError, match="no such job"):
        followed(cloud)
    assert (cloud.calls, cloud.pauses) == (1, [])


def test_the_position_is_that_of_the_last_event() -> None:
    job = Cloud(EVENTS).job("j")

    async def work() -> None:
        async for entry in job.numbered_events():
            assert job.position == entry.number
            if entry.number == NUMBERS[3]:
                return

    run_blocking(work())
    assert job.position == NUMBERS[3]


def test_the_end_of_a_job() -> None:
    job = Cloud(EVENTS).job("j")
    assert run_blocking(job.wait()) is job
    with pytest.raises(TrainingFailed, match="no memory") as failed:
        run_blocking(
            Cloud([*(Log(str(n)) for n in range(30)), Progress(1, 2)], JobState.FAILED, "no memory").job("j").wait()
        )
    assert (failed.value.job, failed.value.reason, failed.value.lines) == (
        "j",
        "no memory",
        tuple(str(number) for number in range(10, 30)),
    )
    with pytest.raises(TrainingCanceled):
        run_blocking(Cloud(EVENTS, JobState.CANCELED).job("j").wait())


def test_wait_shows_lines() -> None:
    file = io.StringIO()
    run_blocking(Cloud([Log("hello"), Progress(1, 2), Status(JobState.COMPLETED)]).job("j").wait(show=True, file=file))
    assert file.getvalue() == "hello\n1 of 2 done\nthe job is completed\n"


# ---- models


def archive(*members: tuple[str, bytes], link: str = "") -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), 0o4777
            tar.addfile(info, io.BytesIO(content))
        if link:
            info = tarfile.TarInfo("link")
            info.type, info.linkname = tarfile.SYMTYPE, link
            tar.addfile(info)
    return file.getvalue()


def downloaded(cloud: Cloud, folder: Path) -> list[Path]:
    return run_blocking(cloud.job("j").download(folder))


def test_a_model_is_unpacked(tmp_path: Path) -> None:
    cloud = Cloud(EVENTS)
    cloud.content = archive(("model.onnx", b"m" * 500), ("more/labels.txt", b"a\n"))
    folder = tmp_path / "a" / "b"
    assert downloaded(cloud, folder) == [folder / "model.onnx", folder / "more/labels.txt"]
    assert (folder / "model.onnx").read_bytes() == b"m" * 500
    assert (folder / "model.onnx").stat().st_mode & 0o7022 == 0
    assert downloaded(cloud, folder)  # existing files are replaced


@pytest.mark.parametrize(
    "content",
    [
        archive(("../out", b"x")),
        archive(link="/etc/passwd"),
        archive(link="model.onnx"),
        archive(("a/../../out", b"x")),
    ],
)
def test_a_model_cannot_leave_its_folder(tmp_path: Path, content: bytes) -> None:
    cloud = Cloud(EVENTS)
    cloud.content = content
    with pytest.raises(MachineError, match=r"the model cannot be unpacked: .* (leads out|neither a file)"):
        downloaded(cloud, tmp_path / "in")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    assert not [*(tmp_path / "in").iterdir()]


def test_a_model_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("training.client.job.BOUNDS", Bounds(entries=10, size=100))
    cloud = Cloud(EVENTS)
    cloud.content = archive(("model.onnx", b"m" * 101))
    with pytest.raises(MachineError, match="more than"):
        downloaded(cloud, tmp_path)


def test_a_damaged_download_is_not_unpacked(tmp_path: Path) -> None:
    cloud = Cloud(EVENTS)
    cloud.content, cloud.checksum = archive(("model.onnx", b"m")), "0" * 64
    with pytest.raises(MachineError, match="SHA-256"):
        downloaded(cloud, tmp_path)
    assert not [*tmp_path.iterdir()]


def test_a_job_that_has_not_completed_has_no_model(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="is in_progress"):
        downloaded(Cloud(EVENTS, JobState.IN_PROGRESS), tmp_path)


def test_an_event_of_a_newer_cloud_is_skipped() -> None:
    assert event_of({"number": 1, "time": NOW, "kind": "picture"}) is None
