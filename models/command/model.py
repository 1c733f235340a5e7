"""Sensor `command`: readings from the output of a program."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from typing import Any, ClassVar, Final

import trio

from engine import Attributes, Context, Extra, Sensor, model
from models.command.attributes import CommandSensorConfig
from models.common.parsing import Parser
from schema import ErrorKind, MachineError
from support import unwrap

GRACE: Final = 1.0  # seconds between asking a program to end and killing it
_kill_group: Final = os.killpg  # systems without it, on which the model cannot be used, say so here
STDERR_SHOWN: Final = 300  # characters of a failed program's stderr in the error
CHUNK: Final = 16384  # bytes


@model("rdk:builtin:command")
class CommandSensor(Sensor):
    """Each reading runs the program once. The program and its children never outlive the call."""

    NEEDS_TRUST: ClassVar[bool] = True
    Config: ClassVar[type[Attributes]] = CommandSensorConfig

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._parser: Parser = self.attributes.parser()

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Any]:
        """Run the program and parse its output. UNAVAILABLE unless it exits with 0. The caller sets the deadline."""
        status, output, errors = await self._run()
        if status != 0:
            stderr = errors.decode(errors="replace").strip()[-STDERR_SHOWN:]
            outcome = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"exited with {status}"
            raise self._error(f"{outcome}: {stderr}" if stderr else outcome, "run it by hand to see why")
        return self._parser.parse(output.decode(errors="replace"))

    def _error(self, outcome: str, remedy: str) -> MachineError:
        # Only the name of the program: arguments may contain secrets.
        name = "the script" if self.attributes.shell else self.attributes.argv[0]
        return MachineError(f"{self.name}: {name} {outcome}", kind=ErrorKind.UNAVAILABLE, remedy=remedy)

    async def _run(self) -> tuple[int, bytes, bytes]:
        config: CommandSensorConfig = self.attributes
        argv = ["/bin/sh", "-c", config.argv[0], "sh", *config.argv[1:]] if config.shell else list(config.argv)
        try:
            process = await trio.lowlevel.open_process(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=config.cwd,
                env={**os.environ, **config.env},
                start_new_session=True,
            )
        except OSError as error:
            raise self._error(
                f"cannot be run: {error.strerror}", "correct argv or cwd, or install the program"
            ) from error
        output, errors = bytearray(), bytearray()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._collect, process.stdout, output, config.max_output_bytes)
                nursery.start_soon(self._collect_stderr, process.stderr, errors)
                status = await process.wait()
                # Kill remaining children too, so that they release the pipes.
                _signal_group(process.pid, signal.SIGKILL)
        except BaseExceptionGroup as group:
            raise unwrap(group) from None
        finally:
            await _terminate(process)
        return status, bytes(output), bytes(errors)

    async def _collect(self, pipe: trio.abc.ReceiveStream | None, output: bytearray, limit: int) -> None:
        assert pipe is not None
        async for chunk in pipe:
            output += chunk
            if len(output) > limit:
                raise self._error(f"printed more than {limit} bytes", "raise max_output_bytes, or print less")

    async def _collect_stderr(self, pipe: trio.abc.ReceiveStream | None, errors: bytearray) -> None:
        assert pipe is not None
        async for chunk in pipe:
            errors += chunk
            del errors[:-CHUNK]


def _signal_group(pid: int, number: signal.Signals) -> None:
    try:
        _kill_group(pid, number)
    except ProcessLookupError:
        pass


async def _terminate(process: trio.Process) -> None:
    """Terminate the process group, kill it after GRACE seconds, and close the pipes. Shielded from cancellation."""
    with trio.CancelScope(shield=True):
        if process.returncode is None:
            _signal_group(process.pid, signal.SIGTERM)
            with trio.move_on_after(GRACE):
                await process.wait()
            _signal_group(process.pid, signal.SIGKILL)
            await process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                await pipe.aclose()
