"""Notice changes of files, also when they are reached through symbolic links or replaced, and call a function then."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import trio

from support.files.inotify import Inotify

SETTLE: Final = 0.2
"""Seconds without an event after which a group of files counts as written: tools write them one after the other."""

_MAX_LINKS: Final = 40  # the same limit as in the kernel


async def follow_files(
    paths: Sequence[Path], act: Callable[[], object], refused: Callable[[Path | None, OSError], object]
) -> None:
    """Call `act` at once and again whenever one of the files has changed, until cancelled.

    `refused` is called with each path that the kernel does not watch, and the reason; with None if it watches nothing
    at all, in which case this function returns.
    """
    try:
        inotify = Inotify()
    except OSError as error:
        refused(None, error)
        return
    try:
        while True:
            # Watches are set before the files are read, so that no change is missed.
            watches = [watched_places(path.absolute()) for path in paths]
            names: set[Path] = set().union(*(names for _, names in watches))
            for path, failure in inotify.watch(set().union(*(folders for folders, _ in watches))):
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


def watched_places(path: Path) -> tuple[set[Path], set[Path]]:
    """Return the directories (and the file itself) to watch for `path`, and the names in them on which it depends.

    These are the directory of each symbolic link on the path, the last directory, and, if a part of the path is
    missing, the last existing directory with the missing name.
    """
    watched: set[Path] = set()
    names: set[Path] = set()
    rest = list(reversed(path.parts[1:]))
    current = Path(path.anchor)
    links = 0
    while rest:
        part = rest.pop()
        if part == "..":
            current = current.parent
            continue
        step = current / part
        is_link = step.is_symlink()
        if is_link or not rest or not step.exists():
            watched.add(current)
            names.add(step)
        if is_link and links < _MAX_LINKS:
            links += 1
            target = Path(os.readlink(step))
            if target.is_absolute():
                current = Path(target.anchor)
                rest.extend(reversed(target.parts[1:]))
            else:
                rest.extend(reversed(target.parts))
            continue
        if not step.exists():
            break
        current = step
    else:
        watched.add(current)
        names.add(current)
    return watched, names
