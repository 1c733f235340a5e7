"""What must be watched to notice that a file has changed, however it is reached; and files that are read again then."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import trio

from support.inotify import Inotify

SETTLE: Final = 0.2
"""Seconds without a notice after which files that belong together count as written: tools write one after the other."""

_MAX_LINKS: Final = 40  # as the kernel


async def follow(
    paths: Sequence[Path], act: Callable[[], object], refused: Callable[[Path | None, OSError], object]
) -> None:
    """Call `act` at once, and again whenever one of the files has changed, until cancelled.

    `refused` is told what the kernel does not watch and why; without a path it watches nothing, and this returns.
    """
    try:
        inotify = Inotify()
    except OSError as error:
        refused(None, error)
        return
    try:
        while True:
            # Watches are set before the files are read, so that no change falls between the two.
            found = [places(path.absolute()) for path in paths]
            names: set[Path] = set().union(*(names for _, names in found))
            for path, failure in inotify.watch(set().union(*(folders for folders, _ in found))):
                refused(path, failure)
            act()
            await inotify.wait(names)
            quiet = False
            while not quiet:
                with trio.move_on_after(SETTLE) as pause:
                    await inotify.wait(names)
                quiet = pause.cancelled_caught
    finally:
        inotify.close()


def places(path: Path) -> tuple[set[Path], set[Path]]:
    """Directories (and the file itself) to watch, and the names in them on which the meaning of `path` depends.

    That is each symbolic link on the way, where it stands; the last directory; and, where the way ends early, the
    missing name in the directory that there is.
    """
    watched: set[Path] = set()
    names: set[Path] = set()
    rest = list(reversed(path.parts[1:]))
    here = Path(path.anchor)
    links = 0
    while rest:
        part = rest.pop()
        if part == "..":
            here = here.parent
            continue
        step = here / part
        is_link = step.is_symlink()
        if is_link or not rest or not step.exists():
            watched.add(here)
            names.add(step)
        if is_link and links < _MAX_LINKS:
            links += 1
            target = Path(os.readlink(step))
            if target.is_absolute():
                here = Path(target.anchor)
                rest.extend(reversed(target.parts[1:]))
            else:
                rest.extend(reversed(target.parts))
            continue
        if not step.exists():
            break
        here = step
    else:
        watched.add(here)
        names.add(here)
    return watched, names
