"""Does the work of a job on a single machine, and records the outcome in the same transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import structlog
import trio

from cloud.documents import pieces
from cloud.documents.pieces import LARGE, SMALL
from cloud.domain.configurations import configurations
from cloud.domain.configurations.configurations import CheckedConfiguration
from cloud.domain.configurations.revisions import Stale, until_fresh
from cloud.domain.fleet import jobs
from cloud.domain.fleet.jobs import Job, JobMachine, Over
from cloud.domain.fleet.work import CONFIGURES, Work, WorkKind, changed_document
from cloud.domain.machines import machines
from cloud.domain.organizations import sharing, tags
from cloud.domain.permissions import audit
from cloud.domain.permissions.access import ObjectKind, Role, require
from cloud.domain.triggering.queue import enqueue_checks_of_machine
from cloud.services.common.base import Cloud
from cloud.services.common.standing import RETRY, patiently
from cloud.store.sql import Sql
from models import builtin_models, check_document, in_cloud
from schema import ErrorKind, MachineError, Masker
from schema.document import decode_document_value

MEANWHILE: Final = "its configuration changed meanwhile"
ACTION: Final = "change_by_job"
"""Action of the entries of the audit log."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger("cloud.fleet")


@dataclass(frozen=True, slots=True)
class _Before:
    """The configuration of a machine's main part."""

    part: str
    revision: int
    text: str


async def apply(cloud: Cloud, job: Job, machine: JobMachine) -> None:
    """Do the work of a job on a machine, or record why it is not done. Waits while the database is unavailable.

    Nothing happens if the job was stopped, or another process has done the machine.
    """
    application = _Application(cloud, job, machine)
    try:
        try:
            await patiently(application.done)
        except Exception as error:  # one machine must not keep the others from being done
            if not isinstance(error, MachineError):
                if isinstance(error, Over):
                    raise
                _log.exception("a machine of a job could not be changed", job=job.id, machine=machine.machine)
                error = MachineError("an unexpected error, which is in the log of the cloud")
            reason = MEANWHILE if isinstance(error, Stale) else str(error)
            await patiently(lambda: application.failed(reason))
    except Over:
        pass


class _Application:
    def __init__(self, cloud: Cloud, job: Job, machine: JobMachine) -> None:
        self._cloud, self._job, self._machine = cloud, job, machine
        self._undoes = bool(job.undo_of)

    async def done(self) -> None:
        """Do the work. MachineError if it cannot be done, Over."""
        if self._job.work.kind in CONFIGURES:
            await until_fresh(self._configured, self._configured)
        else:
            await self._cloud.store.write(self._changed)

    async def failed(self, reason: str) -> None:
        """Record why the work cannot be done."""

        def work(sql: Sql) -> None:
            deleted = not machines.exists(sql, self._machine.machine)
            self._conclude(sql, jobs.FAILED, reason="it was deleted meanwhile" if deleted else reason)

        await self._cloud.store.write(work)

    def _conclude(self, sql: Sql, state: str, *, reason: str = "", effect: Any = None) -> None:
        now = self._cloud.clock()
        jobs.conclude(sql, self._job.id, self._machine.position, state, now, reason=reason, effect=effect)
        if state == jobs.CHANGED:
            job = self._job
            kind = ObjectKind.ROBOT.value
            detail = {"job": job.id, "of": kind, "called": self._machine.name, "work": job.work.kind.value}
            if job.work.kind in CONFIGURES:
                detail |= {"part": effect["part"], "revision": effect["after"]}
            elif job.work.kind in (WorkKind.ADD_TAGS, WorkKind.REMOVE_TAGS):
                detail |= effect
            audit.note(sql, job.organization_id, job.author, ACTION, self._machine.machine, detail, now)

    def _allowed(self, sql: Sql) -> None:
        """Raise MachineError if the person who started the job may not do this any more."""
        try:
            require(sql, self._job.author, Role.OWNER, ObjectKind.ROBOT, self._machine.machine, home=True)
        except MachineError as error:
            raise MachineError(f"not permitted: {error.message}", kind=ErrorKind.PERMISSION) from None

    # ---- configurations

    async def _configured(self) -> None:
        """Check and save a configuration. Stale if it changes meanwhile, so that it must be checked again."""
        store, work = self._cloud.store, self._job.work
        before, restored = await store.read(self._before)
        document = await self._offload(len(before.text), lambda: _after(work, before.text, restored))
        if document is None:
            await store.write(lambda sql: self._unchanged(sql, before))
            return
        candidate, merged = await store.read(lambda sql: self._candidate(sql, before, document))
        if not self._undoes and not candidate.equal:
            refused = await self._offload(LARGE, lambda: _new_problem(merged, candidate.merged))
            if refused:
                raise MachineError(f"value refused: {refused}", kind=ErrorKind.INVALID)
        await store.write(lambda sql: self._saved(sql, before, candidate))

    async def _offload(self, size: int, function: Any) -> Any:
        """Run `function` in the workroom if it may take long; wait while that is full."""
        if size <= SMALL:
            return function()
        while True:
            try:
                return await self._cloud.room.run(self._job.organization_id, function)
            except MachineError as error:
                if error.kind is not ErrorKind.EXHAUSTED:
                    raise
            await trio.sleep(RETRY)

    def _before(self, sql: Sql) -> tuple[_Before, str | None]:
        """Return the current configuration, and the one to restore if the job undoes another one."""
        self._allowed(sql)
        plan = self._machine.plan
        record = machines.part(sql, plan["part"]) if self._undoes else machines.parts(sql, self._machine.machine)[0]
        before = _Before(record.id, record.revision, configurations.current_text(sql, record))
        if not self._undoes:
            return before, None
        if record.revision != plan["after"]:
            raise MachineError(
                f"{MEANWHILE}: it has revision {record.revision}, and the job wrote {plan['after']}",
                kind=ErrorKind.PRECONDITION,
            )
        return before, configurations.text_of(sql, record.id, plan["before"])

    def _candidate(
        self, sql: Sql, before: _Before, document: Mapping[str, Any]
    ) -> tuple[CheckedConfiguration, Mapping[str, Any]]:
        candidate = configurations.candidate(sql, before.part, document)
        if candidate.revision != before.revision:
            raise Stale
        return candidate, configurations.resolved(sql, before.part)

    def _unchanged(self, sql: Sql, before: _Before) -> None:
        self._allowed(sql)
        if machines.part(sql, before.part).revision != before.revision:
            raise Stale
        self._conclude(sql, jobs.UNCHANGED)

    def _saved(self, sql: Sql, before: _Before, candidate: CheckedConfiguration) -> None:
        self._allowed(sql)
        revision = configurations.put(sql, candidate, self._job.author, self._cloud.clock())
        if revision == before.revision:
            self._conclude(sql, jobs.UNCHANGED)
            return
        effect = {"part": before.part, "before": before.revision, "after": revision}
        self._conclude(sql, jobs.CHANGED, effect=effect)

    # ---- everything else

    def _changed(self, sql: Sql) -> None:
        self._allowed(sql)
        work, subject, plan = self._job.work, self._machine.machine, self._machine.plan
        if work.kind is WorkKind.MOVE:
            effect = self._moved(sql, subject, plan)
        elif work.kind is WorkKind.RESTART:
            machines.mark_restart(sql, machines.parts(sql, subject)[0].id, requested=True)
            effect = {"restart": True}
        else:
            effect = _retagged(sql, work, subject, plan)
        if effect and work.kind is not WorkKind.RESTART:
            enqueue_checks_of_machine(sql, subject, self._cloud.clock())
        self._conclude(sql, jobs.CHANGED if effect else jobs.UNCHANGED, effect=effect)

    def _moved(self, sql: Sql, subject: str, plan: Mapping[str, Any]) -> Mapping[str, Any]:
        here = machines.machine(sql, subject).location_id
        target = self._job.work.location_id
        if plan:
            target = plan["before"]
            if here != plan["after"]:
                raise MachineError("it was moved meanwhile", kind=ErrorKind.PRECONDITION)
        if here == target:
            return {}
        require(sql, self._job.author, Role.OWNER, ObjectKind.LOCATION, target, home=True)
        with sharing.moving(sql, here, target):
            machines.update_machine(sql, subject, "", target)
        return {"before": here, "after": target}


def _retagged(sql: Sql, work: Work, subject: str, plan: Mapping[str, Any]) -> Mapping[str, Any]:
    add, remove = (work.tags, ()) if work.kind is WorkKind.ADD_TAGS else ((), work.tags)
    if plan:
        add, remove = tuple(plan["removed"]), tuple(plan["added"])
        current = set(tags.tags_of(sql, [subject]).get(subject, ()))
        if not set(remove) <= current or set(add) & current:
            raise MachineError("its tags changed meanwhile", kind=ErrorKind.PRECONDITION)
    added, removed = tags.change(sql, subject, add, remove)
    return {"added": added, "removed": removed} if added or removed else {}


def _after(work: Work, text: str, restored: str | None) -> Mapping[str, Any] | None:
    """Return the document to save; None if it is the current one."""
    before: Mapping[str, Any] = pieces.loads(text)
    after: Mapping[str, Any] = changed(work, before) if restored is None else pieces.loads(restored)
    return None if after == before else after


def changed(work: Work, before: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a configuration after the work. MachineError without secrets if the work does not fit."""
    try:
        return changed_document(work, before)
    except MachineError as error:
        text = Masker().and_those_of(before).text(str(error))
        raise MachineError(text, kind=error.kind) from None


def _new_problem(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Return the first problem of a configuration that it did not have before; empty if there is none."""
    old, new = (
        check_document(decode_document_value(document), builtin_models(), in_cloud(document)).problems
        for document in (before, after)
    )
    texts = {str(problem) for problem in old}
    problem = next((str(problem) for problem in new if str(problem) not in texts), "")
    return Masker().and_those_of(after).text(problem)
