"""Shell service `builtin`: clients can do everything on the computer that machine-server can."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from engine import Attributes, CopyMessage, CopySource, Extra, FileData, ShellOutput, ShellService, model
from models.shell import receive, send, terminal
from models.shell.attributes import ShellAttributes
from models.shell.request import read_request


@model("rdk:builtin:builtin")
class BuiltinShell(ShellService):
    """Available only if configured; refused with -untrusted-env. Programs that a call starts end with the call."""

    NEEDS_TRUST: ClassVar[bool] = True
    Config: ClassVar[type[Attributes]] = ShellAttributes

    @property
    def directory(self) -> Path:
        """The working directory of shells and base of relative paths."""
        return Path(self.attributes.directory or "~").expanduser()

    def shell(self, data_in: AsyncIterator[Any], *, extra: Extra = None) -> AsyncGenerator[ShellOutput, None]:
        """Run an interactive shell on a terminal, or `command` in extra on pipes without a terminal."""
        config: ShellAttributes = self.attributes
        request = read_request(extra)
        program = os.path.expanduser(config.program) or os.environ.get("SHELL") or "/bin/sh"
        directory = str(self.directory / Path(request.directory).expanduser())
        environment = {**os.environ, "TERM": request.term, **config.env}
        request = replace(request, directory=directory)
        if request.command:
            self.log.info("running a command for a client")  # not the command: it may contain secrets
            return terminal.on_pipes([program, "-c", request.command], request, environment, data_in)
        self.log.info("opening a shell for a client", program=program)
        return terminal.on_terminal([program, "-i"], request, environment, data_in)

    def copy_files_to_machine(
        self,
        files: AsyncIterator[FileData],
        source_type: CopySource,
        destination: str,
        preserve: bool = False,
        *,
        extra: Extra = None,
    ) -> AsyncGenerator[bool, None]:
        """Receive files; each appears under its name only when it is complete."""
        target = self.directory / Path(destination).expanduser()
        self.log.info("receiving files from a client", destination=str(target))
        return receive.files_to(target, source_type, files, preserve=preserve)

    def copy_files_from_machine(
        self,
        paths: Sequence[str],
        acks: AsyncIterator[bool],
        allow_recursion: bool = False,
        preserve: bool = False,
        *,
        extra: Extra = None,
    ) -> AsyncGenerator[CopyMessage, None]:
        """Send files. Follows links to files; skips links to directories below a directory, devices and pipes."""
        sources = [self.directory / Path(path).expanduser() for path in paths]
        self.log.info("sending files to a client", paths=[str(path) for path in sources])
        return send.files_from(sources, acks, recursive=allow_recursion, preserve=preserve, log=self.log)
