"""Runs training jobs: takes them from the queue, prepares their folders, and stores their models in the registry."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Container, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import structlog
import trio

from cloud.blobs import PIECE, STAMP, Blob, discard
from cloud.domain.registry import files, items
from cloud.domain.training import job_keys, jobs, queue, reports
from cloud.domain.training.jobs import JobRecord
from cloud.domain.training.pictures import StoredPicture, pictures
from cloud.domain.training.queue import LEASE, RENEWAL, LostError
from cloud.services.common.base import Cloud
from cloud.services.training import dataset, scripts
from cloud.services.training.remains import Remains
from cloud.services.training.training_messages import ModelFramework
from cloud.store.sql import Sql
from cloud.values.names import new_id
from schema import ErrorKind, MachineError
from support import Worker, unwrap
from support.files import private
from support.foreign import erase
from training.engine import CLOUD, Connect, Engine, Order, RunOutcome, lock, pack_folder, reason_of
from training.environments import LOCK
from training.environments.environments import Environment, Environments
from training.jobs import (
    MAX_SIZE,
    JobEvent,
    JobHappening,
    JobState,
    Log,
    ModelType,
    Report,
    check_examples,
    count_examples,
    read_report,
)
from training.weights import BACKBONE

MARGIN: Final = 30.0  # seconds before the end of a lease at which a job that could not be renewed is stopped
RETRY: Final = 2.0  # seconds until a failed renewal is repeated
PAUSES: Final = (1.0, 5.0, 25.0)  # seconds before each further attempt to store a model
CLEANUP: Final = 5.0  # seconds to give a job back when the cloud stops, and to remove the folder of one that ended
FAILURES: Final = 2  # of this program at one job, before the job fails and is not tried again
LOOKS: Final = (0.5, 1.0, 2.0, 4.0)  # seconds before each further look for workers that have ended on this computer
LONGEST: Final = 600.0  # seconds between two looks at the leases of lost workers
CLASSIFICATION: Final = "training.trainers.classification"
DETECTION: Final = "training.trainers.detection"
_log: structlog.stdlib.BoundLogger = structlog.get_logger("cloud.training")


@dataclass(frozen=True, slots=True)
class RunnerSettings:
    """Where and what a runner runs."""

    folder: Path  # a folder for each job
    slots: int = 1  # jobs at once
    backbone: Path = BACKBONE  # pretrained weights of the trainers
    network: Callable[[str], Connect] | None = None  # serves the cloud to a script as the key with this id
    environments: Environments | None = None  # of scripts; None: all use the interpreter of the engine


class Runner:
    """A worker of the queue. Run one in each process."""

    def __init__(self, cloud: Cloud, engine: Engine, settings: RunnerSettings) -> None:
        self._cloud = cloud
        self._engine = engine
        self._settings = settings
        self._name = new_id()
        self._lock = lock.path_of(settings.folder, self._name)
        self._running = 0
        self._remains = Remains()
        self._failures: dict[str, int] = {}  # by job, of this program, not of the job

    def remove(self, stale: Iterable[Path]) -> None:
        """Remove folders of jobs that have ended, while jobs run."""
        for folder in stale:
            self._remains.add(folder)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run jobs until cancelled; then they return to the queue, with their checkpoints."""
        folder, disk = self._settings.folder, Worker("locks of training jobs")
        async with disk.opened():
            await disk.run(partial(folder.mkdir, mode=private.FOLDER, parents=True, exist_ok=True))
            descriptor = lock.hold(folder, self._name)
            try:
                await self._take_over(disk)
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._look_again, disk)
                    nursery.start_soon(self._remains.run)
                    await self._work(task_status)
            finally:
                os.close(descriptor)

    async def _take_over(self, disk: Worker) -> None:
        """Take the jobs of workers that have ended on this computer, without waiting for the end of their leases."""
        folder, clock = self._settings.folder, self._cloud.clock
        ended = await disk.run(partial(lock.ended, folder))
        if ended:
            await self._cloud.store.write(lambda sql: queue.recover(sql, clock(), ended))
        await disk.run(partial(lock.forget, folder, ended))

    async def _look_again(self, disk: Worker) -> None:
        """Look again for some seconds: processes of a cloud that was killed a moment ago may be ending just now."""
        for pause in (0.0, *LOOKS):
            await trio.sleep(pause)
            others = await disk.run(partial(lock.in_use, self._settings.folder, self._name))
            await self._take_over(disk)  # after the look, or the jobs of a worker that ends in between are left
            if not others:
                break

    async def _work(self, task_status: trio.TaskStatus[None]) -> None:
        store, clock = self._cloud.store, self._cloud.clock
        with self._cloud.events.listening(jobs.TOPIC) as listener:
            async with trio.open_nursery() as nursery:
                task_status.started()
                while True:
                    lost_at = await store.write(lambda sql: queue.recover(sql, clock()))
                    while self._running < self._settings.slots:
                        job = await store.write(lambda sql: queue.take(sql, self._name, clock()))
                        if job is None:
                            break
                        self._running += 1
                        nursery.start_soon(self._hold, job, listener.notify)
                    pause = (lost_at - clock()).total_seconds() if lost_at is not None else LONGEST
                    with trio.move_on_after(max(0.05, min(pause, LONGEST))):
                        await listener.all()

    async def _hold(self, job: JobRecord, notify: Any) -> None:
        """Run a job. If this program fails at it FAILURES times, the job fails. Other jobs go on in any case."""
        try:
            if self._failures.get(job.id, 0) < FAILURES:
                worker = self._name, self._lock
                await _Execution(self._cloud, self._engine, self._settings, worker, job, self._remains).run()
            else:
                await self._fail(job)
            self._failures.pop(job.id, None)
        except Exception as error:
            cause: BaseException = unwrap(error) if isinstance(error, BaseExceptionGroup) else error
            while isinstance(cause, BaseExceptionGroup):
                cause = cause.exceptions[0]
            if isinstance(cause, MachineError) and cause.kind is ErrorKind.UNAVAILABLE:
                raise  # the database: no job can run
            count = self._failures[job.id] = self._failures.get(job.id, 0) + 1
            reason, folder = f"{type(cause).__name__}: {cause}"[:1000], str(self._settings.folder / job.id)
            _log.error(
                "this program failed at a training job",
                job=job.id,
                reason=reason,
                failures=count,
                folder=folder,
                exc_info=cause,
            )
        finally:
            self._running -= 1
            notify(job.id)  # a slot is free

    async def _fail(self, job: JobRecord) -> None:
        reason = f"this cloud failed at running it {FAILURES} times; its log has the reason"
        now = self._cloud.clock()
        await self._cloud.store.write(
            lambda sql: queue.end(sql, job.id, self._name, JobHappening.FAIL, now, reason=reason)
        )
        _log.error("a training job was given up", job=job.id, folder=str(self._settings.folder / job.id))
        self._remains.add(self._settings.folder / job.id)


class _Execution:
    """One start of a job."""

    def __init__(
        self,
        cloud: Cloud,
        engine: Engine,
        settings: RunnerSettings,
        worker: tuple[str, Path],
        job: JobRecord,
        remains: Remains,
    ) -> None:
        self._cloud = cloud
        self._engine = engine
        self._settings = settings
        self._worker, self._lock = worker
        self._job = job
        self._remains = remains
        self._folder = settings.folder / job.id
        self._disk = Worker(f"files of job {job.id}")
        self._work = trio.CancelScope()
        self._lost = False
        self._canceled = False
        self._finishing = False  # the work is done, and its end is being recorded
        self._ended = False  # the end is recorded

    async def run(self) -> None:
        """Run the job and record its end. If cancelled, the job returns to the queue."""
        async with self._disk.opened():
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._keep)
                    outcome: RunOutcome | None = None
                    with self._work:
                        outcome = await self._outcome()
                    if not self._lost:
                        self._finishing = True
                        await self._finish(outcome)
                    nursery.cancel_scope.cancel()
            finally:
                if not self._ended and not self._lost:  # the cloud stops, or the database is unavailable
                    with trio.move_on_after(CLEANUP, shield=True):
                        await self._give_back()

    async def _outcome(self) -> RunOutcome:
        """Return how the job ended."""
        try:
            return await self._trained()
        except MachineError as error:
            return RunOutcome(str(error) or "the cloud could not run the job")
        except OSError as error:
            _log.warning("the files of a training job cannot be used", job=self._job.id, reason=str(error))
            return RunOutcome(reason_of(error))
        except Exception as error:
            _log.exception("a training job failed because of a mistake in this program", job=self._job.id)
            return RunOutcome(f"an internal error: {type(error).__name__}")

    # ---- lease

    async def _keep(self) -> None:
        """Renew the lease, and stop the work if the job is lost or canceled."""
        until = trio.current_time() + LEASE.total_seconds() - MARGIN
        store, clock = self._cloud.store, self._cloud.clock
        with self._cloud.events.listening(jobs.TOPIC, self._job.id) as listener:
            while True:
                asked = trio.current_time()
                try:
                    with trio.fail_at(until):
                        held = await store.write(lambda sql: queue.renew(sql, self._job.id, self._worker, clock()))
                except (LostError, trio.TooSlowError):
                    if not self._finishing:  # otherwise the transaction that records the end decides
                        self._lose("its lease has ended")
                    return
                except MachineError as error:
                    _log.warning("the lease of a training job was not renewed", job=self._job.id, reason=str(error))
                    await trio.sleep(RETRY)
                    continue
                until = asked + LEASE.total_seconds() - MARGIN
                if held.state is JobState.CANCELING:
                    self._canceled = True
                    self._work.cancel()
                with trio.move_on_after(RENEWAL.total_seconds()):
                    await listener.next()

    def _lose(self, reason: str) -> None:
        _log.warning("stopped a training job that was lost", job=self._job.id, reason=reason)
        self._lost = True
        self._work.cancel()

    async def _give_back(self) -> None:
        try:
            await self._write(lambda sql: queue.give_back(sql, self._job.id, self._worker, self._cloud.clock()))
        except MachineError as error:
            _log.warning("a training job was not given back: it continues later", job=self._job.id, reason=str(error))

    # ---- work

    async def _trained(self) -> RunOutcome:
        task = self._job.task
        dataset_pictures = await self._cloud.store.read(
            lambda sql: pictures(sql, task.dataset_id, task.organization_id)
        )
        if not task.script:
            labelled = [entry.picture for entry in dataset_pictures]
            counted = await self._disk.run(partial(count_examples, task.model_type, task.labels, labelled))
            check_examples(task.model_type, task.labels, counted)
        await self._note(f"reading {len(dataset_pictures)} pictures")
        order = await self._order(dataset_pictures)
        await dataset.write(self._disk, self._cloud.blobs, dataset_pictures, order.dataset, task)
        async with self._environment(order) as environment:
            order = replace(
                order, python=environment.python, environment={**environment.variables, **order.environment}
            )
            outcome = await self._engine.run(order, self._report)
        if outcome.reason:
            return outcome
        archive = self._folder / "model.tar.gz"
        added = {LOCK: environment.lock.encode()} if environment.lock else {}
        count = await self._disk.run(partial(pack_folder, order.output, archive, self._cloud.limits.package, added))
        if not count:
            return RunOutcome("the program ended without writing a model")
        return outcome

    @asynccontextmanager
    async def _environment(self, order: Order) -> AsyncIterator[Environment]:
        if order.program is None or self._settings.environments is None:
            yield Environment()
            return
        async with self._settings.environments.of(order, self._report) as environment:
            yield environment

    async def _order(self, dataset_pictures: Sequence[StoredPicture]) -> Order:
        task = self._job.task
        plain = Order(self._job.id, self._folder, "", (), lock=self._lock)
        common = (
            f"--dataset_file={plain.dataset / dataset.DESCRIPTION}",
            f"--model_output_directory={plain.output}",
        )
        if task.script:
            values = tuple(f"--{name}={value}" for name, value in task.arguments.items())
            program = await self._script()
            plain = replace(plain, module=scripts.MODULE, arguments=(*common, *values), program=program)
            return await self._connected(plain) if self._settings.network is not None else plain
        backbone = self._settings.backbone.resolve()
        settings = (
            f"--backbone={backbone}",
            f"--model_type={task.model_type.name.lower()}",
            f"--labels_file={plain.dataset / dataset.LABELS}",
        )
        trainer = DETECTION if task.model_type is ModelType.OBJECT_DETECTION else CLASSIFICATION
        return replace(plain, module=trainer, arguments=(*common, *settings), readable=(backbone,))

    async def _connected(self, order: Order) -> Order:
        """Return the order with a key, and with the network in which every call is made with this key."""
        assert self._settings.network is not None

        def work(sql: Sql) -> tuple[str, str]:
            held = queue.holds(sql, self._job.id, self._worker)
            return job_keys.create(sql, held.id, held.task.organization_id, self._cloud.clock())

        subject, key = await self._write(work)
        environment = {"API_KEY_ID": subject, "API_KEY": key, "TRAINING_CLOUD": "http://{}:{}".format(*CLOUD)}
        return replace(order, environment=environment, connect=self._settings.network(subject))

    async def _script(self) -> Path:
        """Return the folder of the unpacked script. It was readable for the submitter; now only its content matters."""
        task = self._job.task

        def work(sql: Sql) -> files.File:
            item = items.find(sql, task.script)
            return files.best(files.files(sql, item.id), item, task.script_version, "linux/any", ())

        script = await self._cloud.store.read(work)
        archive, folder = self._folder / "script.tar.gz", self._folder / "program"
        await self._disk.run(partial(erase, folder))
        await self._disk.run(partial(self._folder.mkdir, parents=True, exist_ok=True))
        await dataset.download(self._disk, self._cloud.blobs, script.blob, script.size, archive)
        return await scripts.unpack(archive, folder, self._disk)

    async def _note(self, message: str) -> None:
        await self._report([Log(message)])

    async def _report(self, events: Sequence[JobEvent]) -> None:
        """Store events; if that fails, stop the work, which another start continues from its checkpoint."""
        now = self._cloud.clock()
        try:
            await self._write(lambda sql: queue.report(sql, self._job.id, self._worker, events, now))
        except MachineError as error:
            self._lose(str(error))

    # ---- end

    async def _finish(self, outcome: RunOutcome | None) -> None:
        """Record the end of a job that this worker holds, and remove its folder."""
        try:
            if self._canceled or outcome is None:
                await self._end(JobHappening.STOP)
            elif outcome.reason:
                await self._end(JobHappening.FAIL, reason=outcome.reason[:1000])
            else:
                await self._publish()
        except LostError:
            self._lost = True
            return
        self._ended = True
        with trio.move_on_after(CLEANUP, shield=True):  # what is left is removed at the next start
            await self._remains.remove(self._folder, self._disk)

    async def _end(self, happening: JobHappening, *, reason: str = "") -> None:
        now = self._cloud.clock()
        await self._write(lambda sql: queue.end(sql, self._job.id, self._worker, happening, now, reason=reason))

    async def _publish(self) -> None:
        """Store the model as a version of its package, in the transaction that completes the job."""
        report = await self._disk.run(partial(report_in, self._folder / "output"))
        try:
            blob = await self._stored()
        except MachineError as error:
            await self._unpublished(str(error))
            return
        except OSError as error:
            await self._unpublished(reason_of(error))
            return
        try:
            stored = await self._write(partial(self._published, blob=blob, report=report))
        except LostError:
            await discard(self._cloud.blobs, [blob.key])
            raise
        except MachineError as error:
            if error.kind is ErrorKind.UNAVAILABLE:  # the transaction may have been committed
                raise
            await discard(self._cloud.blobs, [blob.key])
            await self._unpublished(str(error))
            return
        if not stored:
            await discard(self._cloud.blobs, [blob.key])

    async def _stored(self) -> Blob:
        """Store the archive of the model, again after an error that may pass: the training may have taken hours."""
        for pause in (*PAUSES, None):
            try:
                return await self._cloud.blobs.put(_pieces(self._disk, self._folder / "model.tar.gz"))
            except MachineError as error:
                if error.kind is not ErrorKind.UNAVAILABLE or pause is None:
                    raise
                _log.warning("a model was not stored", job=self._job.id, reason=str(error), again_in=pause)
            await trio.sleep(pause)
        raise AssertionError

    async def _unpublished(self, reason: str) -> None:
        await self._end(JobHappening.FAIL, reason=f"the model could not be stored: {reason}"[:1000])

    def _published(self, sql: Sql, blob: Blob, report: Report | None) -> bool:
        job, now = queue.holds(sql, self._job.id, self._worker), self._cloud.clock()
        if job.state is JobState.CANCELING:
            queue.end(sql, job.id, self._worker, JobHappening.STOP, now)
            return False
        task = job.task
        try:
            item = items.find(sql, f"{task.organization_id}:{task.model_name}")
        except MachineError:
            item = items.create(sql, task.organization_id, task.model_name, jobs.MODEL, now)
            framework = ModelFramework.UNSPECIFIED if task.script else ModelFramework.ONNX
            metadata = {"model_type": int(task.model_type), "model_framework": int(framework)}
            items.update(sql, item, now, metadata=metadata)
        jobs.check_type(item)
        place = files.checked_place(item, task.model_version, "")
        files.add(sql, item, place, blob, now, {"files": [], "package": {"training_job": job.id}})
        if report is not None:
            reports.keep(sql, job, report)
        queue.end(sql, job.id, self._worker, JobHappening.COMPLETE, now, model=item.package)
        return True

    async def _write(self, work: Any) -> Any:
        return await self._cloud.store.write(work)


def report_in(folder: Path) -> Report | None:
    """Return the report of a trainer, None if it has written none that can be shown. Blocking."""
    try:
        file = os.open(folder / "report.json", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        with open(file, "rb", closefd=False) as content:
            return read_report(content.read(MAX_SIZE + 1))
    except OSError:  # a folder
        return None
    finally:
        os.close(file)


async def _pieces(worker: Worker, path: Path) -> AsyncIterator[bytes]:
    file = await worker.run(lambda: path.open("rb"))
    try:
        while piece := await worker.run(partial(file.read, PIECE)):
            yield piece
    finally:
        file.close()


def folders(folder: Path) -> list[str]:
    """Return the names of the folders of jobs, also of those that have ended; make `folder`. Blocking."""
    folder.mkdir(mode=private.FOLDER, parents=True, exist_ok=True)
    names = os.listdir(folder)
    return [name for name in names if not name.startswith(".") and not name.endswith((lock.SUFFIX, STAMP))]


def stale(folder: Path, names: Iterable[str], kept: Container[str]) -> list[Path]:
    """Return those of the folders that are not `kept`, the ids of unfinished jobs.

    `names` must have been listed before `kept` was read: a replica that uses `folder` may start a job at any time.
    """
    return [folder / name for name in names if name not in kept]
