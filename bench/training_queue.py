"""Measure the queue of training jobs: first log line, start of a cloud, cost with many jobs, turns of organizations.

`python -m bench training_queue [--database sqlite|postgresql] [--only first start cost turns] [--rounds 15]`

* first: seconds from a submission until the client of `training` has the first line of a script, and the first event
  of the trainer, one job after the other. Compared with the start of a bare interpreter that prints a line.
* start: seconds from the start of machine-cloud to its first answer, with and without training, in turn. The cloud
  tries before whether it can isolate programs. Each cloud has the data of an earlier start.
* cost: calls of the queue with 10,000 finished jobs and 100,000 events of eight organizations, each in its own
  transaction, as the cloud makes them. Milliseconds at the caller; PostgreSQL waits for the disk on every commit.
* turns: 50 jobs of three organizations (30, 15 and 5, submitted in this order before the first one starts), two at
  once. The order of their starts is compared with the order of submission.

PostgreSQL is skipped if it is not installed. No package in the index does the same work (isolated programs, turns of
organizations, a transaction with the model), so no other queue is measured.
"""

from __future__ import annotations

import argparse
import io
import os
import statistics
import sys
import tarfile
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import trio

import training
from bench.cloud_process import Database, databases
from cloud.domain.organizations.first import FirstKey, create_owner
from cloud.domain.training import jobs, queue
from cloud.domain.training.jobs import JobRecord, NewJob
from cloud.store.commands import opened_for_command
from cloud.store.sql import Sql, Store
from cloud.values.author import KEY, Author
from cloud.values.times import now, stored
from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey
from tests.e2e.cloud.process import CloudProcess, cloud
from training.jobs.events import JobEvent, Log, Progress, Status, encode_event
from training.jobs.lifecycle import JobHappening, JobState

APP: Final = "viam.app.v1.AppService"
DATA: Final = "viam.app.data.v1.DataService"
PACKAGES: Final = "viam.app.packages.v1.PackageService"
SETS: Final = "viam.app.dataset.v1.DatasetService"
SYNC: Final = "viam.app.datasync.v1.DataSyncService"
LABELS: Final = ("red", "green")
PICTURES: Final = 12  # of each label
SHARES: Final = {"A": 30, "B": 15, "C": 5}  # jobs of each organization
AT_ONCE: Final = 2
TENANTS: Final = 8
JOBS: Final = 10_000
EVENTS: Final = 10  # of each job
LONG: Final = 5000  # further events of the first job
CALLS: Final = 200
LIMIT: Final = 300.0  # seconds for one job
SCRIPT: Final = b"""
import argparse, pathlib
parser = argparse.ArgumentParser()
parser.add_argument("--dataset_file")
parser.add_argument("--model_output_directory")
settings = parser.parse_args()
print("first line", flush=True)
(pathlib.Path(settings.model_output_directory) / "model.onnx").write_bytes(b"model")
"""


@dataclass(frozen=True)
class Tenant:
    """An organization with a dataset and a script, and clients that use its key."""

    owner: FirstKey
    client: ApiClient
    dataset: str


def archive() -> bytes:
    """Return the archive of the script."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        info = tarfile.TarInfo("model/training.py")
        info.size = len(SCRIPT)
        tar.addfile(info, io.BytesIO(SCRIPT))
        tar.addfile(tarfile.TarInfo("setup.py"))
    return file.getvalue()


async def tenant(owner: FirstKey, client: ApiClient) -> Tenant:
    """Fill an organization."""
    from PIL import Image

    robot = await client.call(APP, "", "new_robot", name="eye", location=owner.location)
    part = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]["id"]
    dataset = await client.call(SETS, "", "create_dataset", name="colors", organization_id=owner.organization)
    for label in LABELS:
        ids = []
        for number in range(PICTURES):
            file = io.BytesIO()
            Image.new("RGB", (224, 224), ("#%02x0000" if label == "red" else "#00%02x00") % (255 - number)).save(
                file, "PNG"
            )
            values = {"part_id": part, "type": "FILE", "file_name": f"{label}{number}.png", "file_extension": ".png"}
            sent = await client.call(SYNC, "", "file_upload", **values, contents=[{"data": file.getvalue()}])
            ids.append(sent["binary_data_id"])
        await client.call(DATA, "", "add_tags_to_binary_data_by_ids", tags=[label], binary_data_ids=ids)
        await client.call(DATA, "", "add_binary_data_to_dataset_by_ids", binary_data_ids=ids, dataset_id=dataset)

    async def pieces() -> AsyncIterator[bytes]:
        yield archive()

    item = {"organization_id": owner.organization, "name": "script", "version": "1", "type": "ML_TRAINING"}
    await client.call(PACKAGES, "", "create_package", **item, pieces=pieces())
    return Tenant(owner, client, str(dataset))


def options_of(database: Database, *more: str) -> tuple[str, ...]:
    """Return options of machine-cloud."""
    return (*([f"--database={database.url}"] if database.url else []), f"--training-python={sys.executable}", *more)


def owner_of(running: CloudProcess) -> FirstKey:
    """Return what the first start of a cloud has printed."""
    facts = running.facts
    return FirstKey(facts["organization"], facts["location"], facts["key id"], facts["key"])


def described(seconds: Sequence[float]) -> str:
    """Return the median and the worst of some times."""
    return f"{statistics.median(seconds):.2f} s median, {max(seconds):.2f} s worst of {len(seconds)}"


# ---- first log line


async def bare() -> float:
    """Return the seconds until a bare interpreter has printed a line."""
    begin = time.perf_counter()
    await trio.run_process([sys.executable, "-c", "print('first line', flush=True)"], capture_stdout=True)
    return time.perf_counter() - begin


async def first(folder: Path, database: Database, rounds: int) -> None:
    """Measure from submissions to what their programs say first."""
    async with cloud(folder, *options_of(database)) as running:
        owner = owner_of(running)
        async with Channel(running.address, credentials=ApiKey(owner.id, owner.key)) as channel:
            us = await tenant(owner, ApiClient(channel))
            async with training.connect(f"http://{running.address}", key_id=owner.id, key=owner.key) as client:
                script = f"{owner.organization}:script"
                scripts, trainers, bares = list[float](), list[float](), list[float]()
                for number in range(rounds):
                    bares.append(await bare())
                    custom = partial(client.submit_custom_training_job, owner.organization, us.dataset, script, "1")
                    scripts.append(await until_first(partial(custom, "numbers", str(number))))
                    shipped = partial(client.submit_training_job, owner.organization, us.dataset, "colors", str(number))
                    trainers.append(await until_first(partial(shipped, tags=LABELS)))
    print(f"{database.name}: submission to the first line of a script: {described(scripts)}")
    print(f"{database.name}: submission to the first event of the trainer: {described(trainers)}")
    ratio = statistics.median(scripts) / statistics.median(bares)
    print(f"{database.name}: a bare interpreter: {described(bares)}; the script takes {ratio:.1f} times as long")


async def until_first(submit: Callable[[], Awaitable[Any]]) -> float:
    """Submit a job, return the seconds to the first event of its program, and wait for its end."""
    begin = time.perf_counter()
    job = await submit()
    seconds, reading = 0.0, False
    with trio.fail_after(LIMIT):
        async for event in job.events():
            if reading and not seconds and not isinstance(event, Status):
                seconds = time.perf_counter() - begin
            reading |= isinstance(event, Log) and event.message.startswith("reading ")
        await job.wait()
    return seconds


# ---- start of a cloud


async def start(folder: Path, database: Database, rounds: int) -> None:
    """Measure the start of clouds with and without training."""
    ways = {"without training": "--training-jobs=0", "with training": "--training-jobs=1"}
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(rounds + 1):
        for way, option in ways.items():
            begin = time.perf_counter()
            async with cloud(folder, *options_of(database, option)) as running:
                host, port = running.address.rsplit(":", 1)
                async with await trio.open_tcp_stream(host, int(port)) as stream:
                    await stream.send_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    await stream.receive_some(1)
                    if number:  # the first start makes the database
                        seconds[way].append(time.perf_counter() - begin)
                await running.stop()
    for way, times in seconds.items():
        print(f"{database.name}: start of a cloud {way}: {described(times)}")


# ---- cost of the queue


class Cost:
    """Calls of the queue in a database with many finished jobs."""

    def __init__(self, store: Store, database: Database) -> None:
        self._store = store
        self._database = database
        self._owners: list[FirstKey] = []
        self._number = 0

    async def fill(self) -> None:
        """Add organizations with finished jobs, and to the first job a long log."""
        for number in range(TENANTS):
            self._owners.append(await self._store.write(partial(create_owner, name=f"tenant {number}", now=now())))
        for owner in self._owners:
            await self._store.write(partial(self._finished, owner=owner, count=JOBS // TENANTS))

    def _finished(self, sql: Sql, owner: FirstKey, count: int) -> None:
        moment, base = now() - timedelta(days=1), self._number
        self._number += count
        columns = (
            "id, organization_id, dataset_id, model_name, model_version, model_type, labels, script, script_version, "
            "arguments, author_type, author, state, created, changed, started, ended, attempts, model"
        )
        times = [stored(moment)] * 4
        sql.many(
            f"INSERT INTO training_jobs ({columns}) VALUES ({', '.join('?' * 19)})",
            [
                (f"j{number}", owner.organization, "d", "m", str(number), 1, "[]", "", "", "{}", KEY, "k",
                 JobState.COMPLETED.value, *times, 1, "m")
                for number in range(base, base + count)
            ],
        )  # fmt: skip
        events: list[JobEvent] = [Status(JobState.PENDING), *[Log("a line of the log")] * (EVENTS - 1)]
        log = [encode_event(event) for event in events]
        long = [(f"j{base}", stored(moment), encode_event(Log(f"line {number}"))) for number in range(LONG)]
        rows = [(f"j{number}", stored(moment), event) for number in range(base, base + count) for event in log]
        sql.many("INSERT INTO training_events (job_id, happened, event) VALUES (?, ?, ?)", rows + long * (not base))

    async def run(self) -> None:
        """Measure and print each call."""
        store, owners, author = self._store, self._owners, Author(KEY, "k")
        taken: list[JobRecord] = []

        async def submit() -> None:
            self._number += 1
            task = NewJob(owners[self._number % TENANTS].organization, "d", "m", str(self._number))
            await store.write(lambda sql: jobs.submit(sql, task, author, now()))

        async def take() -> None:
            job = await store.write(lambda sql: queue.take(sql, "w", now()))
            assert job is not None
            taken.append(job)

        async def report() -> None:
            events: list[JobEvent] = [Log("a line"), Progress(1, 2)]
            await store.write(lambda sql: queue.report(sql, taken[-1].id, "w", events, now()))

        async def end() -> None:
            await store.write(lambda sql: queue.end(sql, taken.pop().id, "w", JobHappening.COMPLETE, now()))

        first_owner = owners[0].organization
        reads: dict[str, Callable[[Sql], Any]] = {
            "a page of 200 jobs": lambda sql: jobs.page(sql, first_owner, None, 0, 200),
            "all 1,250 jobs of an organization (ListTrainingJobs)": lambda sql: jobs.jobs(sql, first_owner),
            "the 500 first events of 5,000": lambda sql: jobs.events_after(sql, "j0", 0),
            "the ids of unfinished jobs": jobs.unfinished,
        }
        for name, call in (("submit", submit), ("take", take), ("report 2 events", report), ("end", end)):
            rounds = CALLS if name != "submit" else CALLS + TENANTS
            await self._report(name, call, rounds)
        for name, work in reads.items():
            await self._report(name, partial(store.read, work), CALLS // 10)
        later = now() + timedelta(days=7)
        await self._report("delete 5,000 expired events", lambda: store.write(lambda sql: jobs.expire(sql, later)), 10)

    async def _report(self, name: str, call: Callable[[], Awaitable[Any]], rounds: int) -> None:
        times = []
        for _ in range(rounds):
            begin = time.perf_counter()
            await call()
            times.append(1e3 * (time.perf_counter() - begin))
        print(f"{self._database.name}: {name}: {statistics.median(times):.1f} ms median, {max(times):.0f} ms worst")


async def cost(folder: Path, database: Database, rounds: int) -> None:
    """Measure the queue with many finished jobs."""
    os.mkdir(folder)
    async with opened_for_command(folder / "cloud.db", database.url) as store:
        measured = Cost(store, database)
        await measured.fill()
        await measured.run()


# ---- turns of organizations


async def turns(folder: Path, database: Database, rounds: int) -> None:
    """Run 50 jobs of three organizations and print the order of their starts."""
    async with cloud(folder, *options_of(database, "--training-jobs=1")) as running:
        owners = [owner_of(running)]
        async with opened_for_command(folder / "data" / "cloud.db", database.url) as store:
            owners += [await store.write(partial(create_owner, name=name, now=now())) for name in list(SHARES)[1:]]
        subjects: dict[str, str] = {}
        datasets = []
        for owner in owners:
            async with Channel(running.address, credentials=ApiKey(owner.id, owner.key)) as channel:
                datasets.append((await tenant(owner, ApiClient(channel))).dataset)
        await running.stop()
    await submitted(folder, database, dict(zip(SHARES, zip(owners, datasets, strict=True), strict=True)), subjects)
    begin = time.perf_counter()
    async with cloud(folder, *options_of(database, f"--training-jobs={AT_ONCE}")) as running:
        ended: dict[str, Any] = {}
        for name, owner in zip(SHARES, owners, strict=True):
            async with training.connect(f"http://{running.address}", key_id=owner.id, key=owner.key) as client:
                for subject in [subject for subject, of in subjects.items() if of == name]:
                    await client.job(subject).wait()
                    ended[subject] = await client.job(subject).get()
        finished = max(job.ended for job in ended.values())
        started = min(job.started for job in ended.values())
    whole = time.perf_counter() - begin
    order = [subjects[subject] for subject in sorted(ended, key=lambda subject: ended[subject].started)]
    print(
        f"{database.name}: {len(order)} jobs, {AT_ONCE} at once, all completed in "
        f"{(finished - started).total_seconds():.1f} s ({whole:.1f} s with the start of the cloud)"
    )
    print(f"{database.name}: order of the starts: {''.join(order)}")
    submitted_first = {"A": 0, "B": SHARES["A"], "C": SHARES["A"] + SHARES["B"]}
    for name, share in SHARES.items():
        places = [place + 1 for place, of in enumerate(order) if of == name]
        print(
            f"{database.name}: {name}, {share} jobs: first start at place {places[0]}, last at {places[-1]}; "
            f"in the order of submission {submitted_first[name] + 1} and {submitted_first[name] + share}"
        )


async def submitted(
    folder: Path, database: Database, tenants: dict[str, tuple[FirstKey, str]], subjects: dict[str, str]
) -> None:
    """Queue the jobs while no cloud runs."""
    async with opened_for_command(folder / "data" / "cloud.db", database.url) as store:
        for name, share in SHARES.items():
            owner, dataset = tenants[name]
            for number in range(share):
                script = f"{owner.organization}:script"
                task = NewJob(owner.organization, dataset, "numbers", str(number), script=script, script_version="1")
                subject = await store.write(partial(jobs.submit, task=task, author=Author(KEY, owner.id), now=now()))
                subjects[subject] = name


PARTS: Final = {"first": first, "start": start, "cost": cost, "turns": turns}


async def measure(selected: Sequence[str], which: str, rounds: int) -> None:
    """Measure the selected parts, each with an empty database."""
    for name in selected:
        with databases(which) as each, tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o711)  # programs of jobs have other users
            for number, database in enumerate(each):
                await PARTS[name](Path(folder) / str(number), database, rounds)


def main(argv: Sequence[str]) -> int:
    """Measure what the arguments say."""
    parser = argparse.ArgumentParser(prog="python -m bench training_queue", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--database", choices=("both", "sqlite", "postgresql"), default="both")
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--rounds", type=int, default=15, help="jobs of each kind, and starts of each cloud")
    arguments = parser.parse_args(argv)
    trio.run(measure, arguments.only, arguments.database, arguments.rounds)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
