"""Where the cloud is and with which key: signed in once, kept in a file that only this user reads."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

import click

ADDRESS: Final = "MACHINE_CLOUD"
KEY_ID: Final = "MACHINE_CLOUD_KEY_ID"
KEY: Final = "MACHINE_CLOUD_KEY"


@dataclass(frozen=True, slots=True)
class Login:
    """One cloud and one key."""

    address: str
    key_id: str
    key: str = field(repr=False)


def file_of(environment: Mapping[str, str]) -> Path:
    """Where it is kept: `machine/cloud.json` in XDG_CONFIG_HOME, by default `~/.config`."""
    named = environment.get("XDG_CONFIG_HOME")
    return (Path(named) if named else Path.home() / ".config") / "machine" / "cloud.json"


def save(login: Login, environment: Mapping[str, str]) -> Path:
    """Keep it, readable by this user only; where."""
    path = file_of(environment)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(asdict(login), file)
    part.replace(path)
    return path


def load(environment: Mapping[str, str]) -> Login:
    """What the environment says, or else the file; UsageError with what to do if neither says enough."""
    given = [environment.get(name, "") for name in (ADDRESS, KEY_ID, KEY)]
    if all(given):
        return Login(*given)
    if any(given):
        absent = ", ".join(name for name, value in zip((ADDRESS, KEY_ID, KEY), given, strict=True) if not value)
        raise click.UsageError(f"{absent} is not set: set all of {ADDRESS}, {KEY_ID} and {KEY}, or none")
    path = file_of(environment)
    try:
        found = json.loads(path.read_text())
        return Login(found["address"], found["key_id"], found["key"])
    except FileNotFoundError:
        raise click.UsageError("not signed in: run `machine cloud login ADDRESS --key-id ID`") from None
    except (OSError, ValueError, KeyError, TypeError):
        raise click.UsageError(f"{path} cannot be read: run `machine cloud login` again") from None


def forget(environment: Mapping[str, str]) -> bool:
    """Remove what was kept; whether there was something."""
    path = file_of(environment)
    if not path.exists():
        return False
    path.unlink()
    return True
