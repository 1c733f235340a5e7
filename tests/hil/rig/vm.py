"""One virtual machine: the process of QEMU, its disk and its sockets. It lives as long as a module of tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.hil.image.places import BUILD, IMAGE
from tests.hil.rig.qemu import command_line


class VirtualMachine:
    """`with VirtualMachine(share) as vm:` has a guest of its own, resumed from the saved state.

    Its disk is a layer over the image, thrown away at the end. `share` is a folder that the guest can mount.
    """

    def __init__(self, share: Path, *, image: Path = IMAGE, resume: bool = True, threads: str = "multi") -> None:
        self.image = image
        self.threads = threads
        self.share = share
        self.resumed = resume
        BUILD.mkdir(parents=True, exist_ok=True)
        self.folder = Path(tempfile.mkdtemp(prefix=f"run-{os.getpid()}-", dir=BUILD))
        self.disk = self.folder / "disk.qcow2"
        self.process: subprocess.Popen[bytes] | None = None
        self.started = 0.0
        self.hung = False
        self.kept: dict[str, int] = {}  # programs that outlive a test, by name: their number at the agent

    def __enter__(self) -> Self:
        self._prepare_disk()
        self.start(resume=self.resumed)
        return self

    def _prepare_disk(self) -> None:
        base = self.image / "base.qcow2"
        layer = [str(self.disk)] if base.exists() else []
        if layer:
            self._run("qemu-img", "create", "-q", "-f", "qcow2", "-b", str(base), "-F", "qcow2", *layer)
        else:
            self._run(
                *("qemu-img", "create", "-q", "-f", "qcow2", "-b", "root.ext4", "-F", "raw"),
                str(base),
            )
            self.disk = base

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, *, resume: bool) -> None:
        """Start QEMU on the disk as it is now."""
        for name in ("agent.sock", "qmp.sock"):
            (self.folder / name).unlink(missing_ok=True)
        state = self.image / "state.zst" if resume else None
        self.resumed = resume
        self.started = time.monotonic()
        with (self.folder / "qemu.log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *("setpriv", "--pdeathsig", "KILL"),  # nobody would look after it when we are killed
                    *command_line(self.image, self.disk, self.folder, self.share, state=state, threads=self.threads),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def renew(self) -> None:
        """Have a new guest, as saved, in the place of one that answers no more."""
        self.kill()
        self.disk.unlink(missing_ok=True)
        self._prepare_disk()
        self.start(resume=True)
        self.hung = False

    def kill(self) -> None:
        """End QEMU at once, as if the power had gone: what the guest had not written to its disk is lost."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self.kept.clear()

    def log(self) -> str:
        """What QEMU and the guest's console have said: the reason when nothing else answers."""
        texts = []
        for name in ("qemu.log", "console.log"):
            path = self.folder / name
            if path.exists():
                texts.append(path.read_text(errors="replace")[-4000:])
        return "\n".join(texts)

    @staticmethod
    def _run(*words: str) -> None:
        subprocess.run(words, check=True, capture_output=True)
