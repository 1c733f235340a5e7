"""One virtual machine: its process, its folder and its share. It lives as long as a module of tests.

`tests.hil.rig.qemu_machine` and `tests.hil.rig.uml_machine` are the two kinds; `tests.hil.rig.kinds` chooses one.
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

from tests.hil.image.places import BUILD, IMAGE


class VirtualMachine(ABC):
    """`with QemuMachine(share) as vm:` has a guest of its own.

    Its disk is a layer over the image, thrown away at the end. `share` is a folder that the guest can mount.
    """

    logs: tuple[str, ...] = ("console.log",)
    """Files in `folder` that say why nothing else answers."""

    def __init__(self, share: Path, *, image: Path = IMAGE, resume: bool = True) -> None:
        self.image = image
        self.share = share
        self.resumed = resume
        BUILD.mkdir(parents=True, exist_ok=True)
        self.folder = Path(tempfile.mkdtemp(prefix=f"run-{os.getpid()}-", dir=BUILD))
        self.process: subprocess.Popen[bytes] | None = None
        self.started = 0.0
        self.hung = False
        self.kept: dict[str, int] = {}  # programs that outlive a test, by name: their number at the agent

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
        """Make the disk as it is in the image."""

    @abstractmethod
    def start(self, *, resume: bool) -> None:
        """Start the machine on the disk as it is now, from its saved state if it has one and `resume` is set.

        Call it in the main thread: the machine is killed when the thread that started it ends.
        """

    @abstractmethod
    def setup(self) -> str:
        """The shell command with which every session in the guest begins: network and share, if they are not there."""

    @abstractmethod
    async def open_agent(self) -> trio.abc.Stream:
        """A new connection to the command agent; `Gone` if the machine has ended."""

    async def renew(self) -> None:
        """Replace a guest that does not answer by a new one, as it is in the image."""
        await trio.to_thread.run_sync(self.kill)
        self.prepare_disk()
        self.start(resume=True)
        self.hung = False

    def kill(self) -> None:
        """End the machine at once, as a power cut does: what the guest had not written to its disk is lost."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self.kept.clear()

    def log(self) -> str:
        """The end of what the machine and the guest's console have written."""
        paths = [self.folder / name for name in self.logs]
        return "\n".join(path.read_text(errors="replace")[-4000:] for path in paths if path.exists())

    def launch(self, words: list[str], **options: object) -> None:
        """Start the process of the machine. It is killed when this process ends, however that happens."""
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
