"""A virtual machine: its process, its folder and its share. It lives as long as a test module.

The two kinds are in `tests.hil.rig.qemu_machine` and `tests.hil.rig.uml_machine`; `tests.hil.rig.kinds` chooses one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import Self

import trio

from tests.hil.image.contents import SOURCE
from tests.hil.image.places import BUILD, IMAGE


class VirtualMachine(ABC):
    """The base of both kinds; `with QemuMachine(share) as vm:` runs a guest for the block.

    Its disk is a layer over the image, discarded at the end. `share` is a folder that the guest can mount,
    and `source` where it mounts the project's source.
    """

    logs: tuple[str, ...] = ("console.log",)
    """Files in `folder` that help to explain why the guest does not answer."""

    def __init__(self, share: Path, *, image: Path = IMAGE, resume: bool = True) -> None:
        self.image = image
        self.share = share
        self.source = SOURCE
        self.resumed = resume
        BUILD.mkdir(parents=True, exist_ok=True)
        self.folder = Path(tempfile.mkdtemp(prefix=f"run-{os.getpid()}-", dir=BUILD))
        self.process: subprocess.Popen[bytes] | None = None
        self.started = 0.0
        self.hung = False
        self.kept: dict[str, int] = {}  # agent numbers of the programs that outlive a test, by name

    def __enter__(self) -> Self:
        self.prepare_disk()
        self.start(resume=self.resumed)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    @abstractmethod
    def prepare_disk(self) -> None:
        """Reset the disk to the content of the image."""

    @abstractmethod
    def start(self, *, resume: bool) -> None:
        """Start the machine with the disk's present content, from a saved state if there is one and `resume` is set.

        Call it in the main thread: the machine is killed when the thread that started it ends.
        """

    @abstractmethod
    def setup(self) -> str:
        """Return the shell command that begins every session: it sets up network and share unless they are there."""

    @abstractmethod
    async def open_agent(self) -> trio.abc.Stream:
        """Open a new connection to the command agent; `Gone` if the machine has ended."""

    async def renew(self) -> None:
        """Replace a guest that does not answer by a new one with the disk of the image."""
        await trio.to_thread.run_sync(self.kill)
        self.prepare_disk()
        self.start(resume=True)
        self.hung = False

    def kill(self) -> None:
        """End the machine at once, as a power cut does: data that the guest had not written to its disk is lost."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self.kept.clear()

    def log(self) -> str:
        """Return the end of the output of the machine and the guest's console."""
        paths = [self.folder / name for name in self.logs]
        return "\n".join(path.read_text(errors="replace")[-4000:] for path in paths if path.exists())

    def launch(self, words: list[str], **options: object) -> None:
        """Start the process of the machine. The kernel kills it when this process ends."""
        self.started = time.monotonic()
        with (self.folder / self.logs[0]).open("ab") as log:
            self.process = subprocess.Popen(  # type: ignore[call-overload]
                ["setpriv", "--pdeathsig", "KILL", *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **options,
            )
