"""machine-server as a program that is updated."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import partial
from typing import Any, Final

import trio

from agent.actions.program import ProgramFacts
from agent.layout import Layout
from agent.supervise.probe import restart_status
from agent.supervise.processes import variables
from agent.supervise.state import ServerProcess, ServerState
from agent.supervise.supervisor import Supervisor
from agent.supervise.units import files_of

ASK_LIMIT: Final = 10.0
"""Seconds for an answer of machine-server."""


class ServerProgram:
    """Implements Program for the machine-server of a supervisor. `offline` says why the machine is offline."""

    def __init__(
        self,
        layout: Layout,
        supervisor: Supervisor,
        run_blocking: Callable[[Callable[[], Any]], Awaitable[Any]],
        offline: Callable[[], str],
    ) -> None:
        self._supervisor, self._run, self._offline = supervisor, run_blocking, offline
        self._address = files_of(layout).address
        self._seen: tuple[int, float] = (0, 0.0)  # process id, and when this object first saw it
        self._last: ServerState | None = None

    async def stop(self, reason: str) -> None:
        """End the program if a change of its links requires that."""
        await self._supervisor.stop(reason=reason)

    async def start(self, sha256: str) -> None:
        """Let the launcher start the release that is linked, `sha256`; replace a process of another release."""
        process = self._supervisor.state().process
        if process is not None and await self._release(process) not in ("", sha256):
            await self._supervisor.restart(reason="another release is linked")
        else:
            await self._supervisor.start()

    async def facts(self) -> ProgramFacts:
        """Return the state now."""
        state = self._last = self._supervisor.state()
        process = state.process
        if process is None:
            return ProgramFacts(offline=self._offline())
        now = trio.current_time()
        if self._seen[0] != process.pid:
            self._seen = (process.pid, now)
        configured = False
        if state.answering:
            with trio.move_on_after(ASK_LIMIT):
                status = await restart_status(self._address, process.pid, self._run)
                configured = status is not None and status.configured
        up = now - self._seen[1]
        return ProgramFacts(await self._release(process), up, state.answering, configured, self._offline())

    async def _release(self, process: ServerProcess) -> str:
        """Return the release of a process; empty while the launcher has not replaced itself by the program."""
        if process.release:
            return process.release
        environment: dict[str, str] = await self._run(partial(variables, process.pid))
        return environment.get("MACHINE_RELEASE", "")

    async def change(self) -> None:
        """Wait until the state may have changed since the last `facts`."""
        async with aclosing(self._supervisor.changes()) as changes:
            async for state in changes:
                if state != self._last:
                    return

    def obstacle(self) -> str:
        """Return why a new release could not be tried now, such as that the program is disabled; or empty."""
        return "machine-server is disabled by a setting" if self._supervisor.state().disabled else ""
