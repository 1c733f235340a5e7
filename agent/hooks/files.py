"""The files of hooks, and whether they may be run. All functions block.

Hooks run with the rights of the agent, usually root. So no other user may be able to change one: neither its file nor a
folder above it. The cloud cannot create one, because the agent writes none.
"""

from __future__ import annotations

import os
import stat
from itertools import islice
from pathlib import Path
from typing import Final

from agent.hooks.moments import HookMoment
from schema import ConfigError
from schema.decoding import detached, did_you_mean

NAMES: Final = tuple(moment.value for moment in HookMoment)
_MAX_FILES: Final = 100
_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH


def find(folder: Path, moment: HookMoment) -> Path | None:
    """Return the program of a hook, None if there is none. Raises ConfigError if it must not be run."""
    path = folder.absolute() / moment.value
    try:
        for part in (*reversed(path.parents), path):
            _check(part, part.lstat(), part == path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(str(path), f"the hook cannot be read: {error.strerror}") from None
    return path


def _check(path: Path, status: os.stat_result, is_hook: bool) -> None:
    """Raise ConfigError if another user could change a file or folder, or a hook cannot be executed."""
    if stat.S_ISLNK(status.st_mode):
        raise ConfigError(str(path), "is a link, and hooks are not run through links", remedy="write a file instead")
    if is_hook and not stat.S_ISREG(status.st_mode):
        raise ConfigError(str(path), "is not a file", remedy="write a program or script with this name")
    if status.st_uid not in (0, os.geteuid()):
        text = f"belongs to user {status.st_uid}, who could change what the agent runs"
        raise ConfigError(str(path), text, remedy=f"run `chown root {path}`")
    # In a sticky folder such as /tmp, other users cannot replace what belongs to root, which is checked for each part.
    if status.st_mode & _OTHERS and (is_hook or not status.st_mode & stat.S_ISVTX):
        text = "can be changed by other users, who could then change what the agent runs"
        raise ConfigError(str(path), text, remedy=f"run `chmod go-w {path}`")
    if is_hook and not status.st_mode & 0o111:
        remedy = f"run `chmod +x {path}`, or give it a name with a dot to disable it"
        raise ConfigError(str(path), "is not executable", remedy=remedy)


def check(folder: Path) -> tuple[ConfigError, ...]:
    """Return what keeps hooks from being run. Names with a dot or tilde, such as `before-switch.off`, are ignored."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in islice(entries, _MAX_FILES))
    except FileNotFoundError:
        return ()
    except OSError as error:
        return (ConfigError(str(folder), f"hooks cannot be read: {error.strerror}"),)
    problems = []
    for name in names:
        if name in NAMES:
            try:
                find(folder, HookMoment(name))
            except ConfigError as error:
                problems.append(detached(error))
        elif "." not in name and not name.endswith("~"):
            shown = os.fsencode(name).decode("utf-8", "replace")[:80]
            problems.append(ConfigError(f"{folder}/{shown}", "is not a hook", remedy=did_you_mean(shown, NAMES)))
    return tuple(problems)
