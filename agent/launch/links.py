"""The links that tell the launcher what to start, and the launcher itself. All functions block: call them in a worker.

The record of a program decides which release is to run; the links follow it, so that the launcher does what was decided
even if the agent does not run.
"""

from __future__ import annotations

import os
import re
from pathlib import PurePath
from typing import Final, NamedTuple

from agent.launch.command import SCRIPT, is_program
from agent.layout import Layout
from schema import ErrorKind, MachineError
from support.files import read_link, replace_file, replace_link, sync_folder

MAX_STARTS: Final = 3
"""Starts of a release on trial; the launcher starts `back` instead of a further one."""

_PART: Final = ".part"
_SHA256: Final = re.compile(r"[0-9a-f]{64}\Z")


class Launch(NamedTuple):
    """What the launcher starts."""

    run: str | None
    """SHA-256 of the release that it starts; None if the link leads to no executable release."""
    back: str | None
    """SHA-256 of the release that it starts instead of a failed one; None if there is none."""
    on_trial: bool
    """Whether it counts the starts of `run`."""
    starts: int
    """How often it has started `run`, or has been asked to; more than MAX_STARTS means that `back` was started."""

    @property
    def fell_back(self) -> bool:
        """Whether the launcher has started `back` because `run` failed its trial."""
        return self.starts > MAX_STARTS


def read(layout: Layout, program: str) -> Launch:
    """Return what the launcher starts. A count of starts that cannot be read counts as MAX_STARTS, as for the launcher.

    Raises OSError if the folder cannot be read.
    """
    folder = layout.launch(program)
    try:
        text = (folder / "trial").read_text("ascii", "replace").strip()
    except FileNotFoundError:
        on_trial, starts = False, 0
    else:
        on_trial, starts = True, int(text) if re.fullmatch("[0-9]", text) else MAX_STARTS
    return Launch(_target(layout, program, "run"), _target(layout, program, "back"), on_trial, starts)


def point(layout: Layout, program: str, *, run: str, back: str | None, trial: bool) -> None:
    """Let the launcher start release `run`, and `back` if `run` fails; with `trial`, count the starts of `run`.

    May be repeated: the starts of a trial that has already begun continue to count. After a power cut at any moment,
    the launcher starts a release that was linked before or is linked now, and a release on trial only with a count.
    A `back` that cannot be executed is left out.

    Raises MachineError, and changes nothing, if `run` cannot be executed; OSError if the disk refuses.
    """
    if not is_usable(layout, program, run):
        raise MachineError(
            f"{layout.release(program, run) / 'run'} is not an executable file",
            kind=ErrorKind.PRECONDITION,
            remedy="stage the release again",
        )
    folder = layout.launch(program)
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    if back is not None and not is_usable(layout, program, back):
        back = None
    if trial:
        # `run` changes last: until then the previous release is started, and its start is counted in the worst case.
        _link(layout, program, "back", back)
        if not (_target(layout, program, "run") == run and (folder / "trial").exists()):
            replace_file(folder / "trial", b"0\n", 0o644)
        _link(layout, program, "run", run)
    else:
        # `back` changes last: until then a count that has ended leads to the release that was good before.
        _link(layout, program, "run", run)
        (folder / "trial").unlink(missing_ok=True)
        sync_folder(folder)
        _link(layout, program, "back", back)


def install_launcher(layout: Layout) -> bool:
    """Write the launcher to its place if it differs; return whether it was written.

    Call it at installation and after an agent was confirmed, never in one on trial: nothing could undo it.
    """
    content = SCRIPT.read_bytes()
    try:
        if layout.launcher.read_bytes() == content and os.access(layout.launcher, os.X_OK):
            return False
    except FileNotFoundError:
        layout.launcher.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    replace_file(layout.launcher, content, 0o755)
    return True


def is_usable(layout: Layout, program: str, sha256: str) -> bool:
    """Return whether the launcher would start this release."""
    if not _SHA256.match(sha256):
        raise ValueError(f"{sha256!r} is not a SHA-256")
    return is_program(layout.release(program, sha256) / "run")


def _target(layout: Layout, program: str, name: str) -> str | None:
    try:
        sha256 = PurePath(read_link(layout.launch(program) / name)).name
    except FileNotFoundError:
        return None
    return sha256 if _SHA256.match(sha256) and is_usable(layout, program, sha256) else None


def _link(layout: Layout, program: str, name: str, sha256: str | None) -> None:
    """Replace a link atomically and durably; None removes it."""
    link = layout.launch(program) / name
    if sha256 is None:
        link.unlink(missing_ok=True)
    else:
        replace_link(link, PurePath(os.path.relpath(layout.release(program, sha256), link.parent)).as_posix())
