"""Keeps machine-server alive: waits until it serves, asks it again and again, and kills it if it hangs."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec
import structlog
import trio

from agent.supervise.health import DEFAULT_LIMITS, HealthLimits, ProbeAnswer, ServerHealth, judge
from agent.supervise.processes import identified, is_suspended
from agent.supervise.state import KEPT_EXITS, ServerBackend, ServerExit, ServerProcess, ServerState
from schema import MachineError
from support import ChangeSignal, RunBlocking
from support.files import follow_files, replace_file

LATENESS: Final = 1.0  # seconds by which a timer of the agent may be late before a missing answer is excused
ADOPTED: Final = 60.0  # seconds in which a process that was running before the agent must answer

_log = structlog.get_logger("agent.supervise")


class Probe(Protocol):
    """Asks machine-server."""

    async def __call__(self, pid: int) -> bool:
        """Return whether process `pid` answers a request. Cancelled when its time is over."""
        ...


class Supervisor:
    """Supervises machine-server, which `backend` runs. All methods may be called while `run` runs.

    `exits` is the file in which the last exits are kept; `address` the file that the server writes when it serves.
    """

    def __init__(
        self,
        backend: ServerBackend,
        probe: Probe,
        run: RunBlocking,
        *,
        exits: Path,
        address: Path,
        limits: HealthLimits = DEFAULT_LIMITS,
    ) -> None:
        self._backend, self._probe, self._run = backend, probe, run
        self._exits_file, self._address = exits, address
        self.limits = limits
        self._state = ServerState()
        self._changed = ChangeSignal()
        self._appeared = ChangeSignal()  # the address file has changed
        self._watching = trio.CancelScope()
        self._environment = ""
        self._stopping = False
        self._killed_for = ""
        self._nursery: trio.Nursery | None = None
        self._operation = trio.Lock()

    def state(self) -> ServerState:
        """Return the current state."""
        return self._state

    def changes(self) -> AsyncGenerator[ServerState, None]:
        """Yield the state now and after each change. A slow reader misses intermediate ones."""
        return self._changed.values(lambda: self._state)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Supervise until cancelled; `started` once a process that was running before is adopted.

        What happens to machine-server then is up to the back end: systemd keeps it running, a child is stopped. `run`
        may be called again after it has ended, and adopts the process that runs then.
        """
        self._update(exits=await self._run(partial(_load, self._exits_file)))
        try:
            async with trio.open_nursery() as self._nursery:
                self._nursery.start_soon(follow_files, [self._address], self._notice, self._not_watched)
                await self._nursery.start(self._backend.run, self._has_started, self._has_ended)
                task_status.started()
        finally:
            self._update(process=None, serving_since=0.0, answering=False)  # nothing is known any more

    async def start(self) -> None:
        """Start machine-server unless it runs or is disabled. Raises MachineError."""
        if self._state.disabled:
            return
        async with self._operation:
            await self._backend.start()

    async def stop(self, *, reason: str) -> None:
        """Stop machine-server, and keep it stopped until `start`; returns when it has ended. Raises MachineError."""
        async with self._operation:
            await self._stop(reason)

    async def restart(self, *, reason: str) -> None:
        """Stop machine-server and start it again, unless it is disabled. Raises MachineError."""
        async with self._operation:
            await self._stop(reason)
            if not self._state.disabled:
                await self._backend.start()

    async def _stop(self, reason: str) -> None:
        _log.info("stopping machine-server", reason=reason)
        self._stopping = True
        try:
            await self._backend.stop()
        finally:
            self._stopping = False

    async def configure(self, environment: Mapping[str, str], *, disabled: bool, start_timeout: float) -> None:
        """Apply settings. Disabling stops machine-server at once, enabling starts it.

        Another environment needs a restart, which is left to the caller: see ServerState.restart_needed. A new start
        timeout applies to the next start. Raises MachineError, and OSError if the settings cannot be stored.
        """
        complete = identified(environment)
        await self._backend.configure(complete, disabled=disabled)
        self._environment = complete["MACHINE_ENVIRONMENT"]
        self.limits = self.limits._replace(start=start_timeout)
        changed = disabled != self._state.disabled
        self._update(disabled=disabled)
        _log.debug(
            "decided about machine-server after a change of settings",
            decision="stop" if changed and disabled else "start" if changed else "keep",
            disabled=disabled,
            start_timeout=start_timeout,
            restart_needed=self._state.restart_needed or "no",
        )
        if changed and disabled:
            await self.stop(reason="it is disabled by a setting")
        elif changed:
            await self.start()

    def _update(self, **changes: Any) -> None:
        state = self._state._replace(**changes)
        process = state.process
        outdated = process is not None and process.environment != "" and process.environment != self._environment
        state = state._replace(
            restart_needed="its environment variables have changed" if outdated and self._environment else ""
        )
        if state != self._state:
            self._state = state
            self._changed.announce()

    # ---- what the back end reports

    def _has_started(self, process: ServerProcess) -> None:
        assert self._nursery is not None
        self._watching.cancel()
        self._watching = trio.CancelScope()
        _log.info("machine-server runs", pid=process.pid, release=process.release[:12])
        self._update(process=process, serving_since=0.0, answering=False)
        self._nursery.start_soon(self._watch, process, self._watching)

    def _has_ended(self, end: ServerExit) -> None:
        assert self._nursery is not None
        self._watching.cancel()
        exits = self._state.exits
        if not self._stopping:
            if self._killed_for:
                end = ServerExit(end.time, f"{end.reason}: {self._killed_for}", end.ran)
            exits = (*exits, end)[-KEPT_EXITS:]
            _log.warning("machine-server has ended", reason=end.reason, ran=round(end.ran, 1))
        self._killed_for = ""
        self._update(process=None, serving_since=0.0, answering=False, exits=exits)
        self._nursery.start_soon(self._keep)

    async def _keep(self) -> None:
        """Store the exits as they are now, so that the order in which such tasks run does not matter."""
        try:
            await self._run(partial(replace_file, self._exits_file, msgspec.json.encode(self._state.exits)))
        except OSError as error:
            _log.warning("the exits of machine-server cannot be stored", error=error.strerror)

    def _notice(self) -> None:
        self._appeared.announce()

    def _not_watched(self, path: Path | None, error: OSError) -> None:
        _log.warning("a file cannot be watched", path=str(path or self._address), error=error.strerror)

    # ---- watching one process

    async def _watch(self, process: ServerProcess, scope: trio.CancelScope) -> None:
        with scope:
            now = trio.current_time()
            age = now - process.began
            limits = self.limits
            health = ServerHealth(now + max(limits.start - age, min(ADOPTED, limits.start)))
            while True:
                appeared = self._appeared.next
                answer = await self._ask(process.pid, limits.request)
                served = health.served
                health, reason = judge(health, answer, trio.current_time(), limits)
                _log.debug(
                    "decided whether machine-server is healthy",
                    pid=process.pid,
                    decision="kill" if reason else "keep",
                    answer=answer.name.lower(),
                    served=served,
                    reason=reason or "within its limits",
                )
                if reason:
                    await self._kill(reason)
                    health = ServerHealth(trio.current_time() + limits.start)  # if it cannot be killed, try again later
                self._note(answer)
                with trio.move_on_after(limits.interval if health.served else limits.retry):
                    if health.served:
                        await trio.sleep_forever()
                    await appeared.wait()

    def _note(self, answer: ProbeAnswer) -> None:
        if answer is ProbeAnswer.ANSWERED:
            if not self._state.serving_since:
                _log.info("machine-server serves")
            self._update(answering=True, serving_since=self._state.serving_since or time.time())
        elif answer is ProbeAnswer.SILENT:
            self._update(answering=False)

    async def _ask(self, pid: int, limit: float) -> ProbeAnswer:
        """Ask once. A missing answer is excused if the server could not have answered in time."""
        begun = trio.current_time()
        with trio.move_on_after(limit):
            if await self._probe(pid):
                return ProbeAnswer.ANSWERED
        late = trio.current_time() - begun > limit + LATENESS
        return ProbeAnswer.EXCUSED if late or is_suspended(pid) else ProbeAnswer.SILENT

    async def _kill(self, reason: str) -> None:
        _log.error("machine-server is killed", reason=reason)
        self._killed_for = reason
        try:
            await self._backend.kill()
        except MachineError as error:
            self._killed_for = ""
            _log.error("machine-server cannot be killed", error=str(error))


def _load(path: Path) -> tuple[ServerExit, ...]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=tuple[ServerExit, ...])[-KEPT_EXITS:]
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return ()
