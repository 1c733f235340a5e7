"""Address and key of the cloud: saved by `machine cloud login` in a file that only this user can read."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from command.connection import Connection

ADDRESS: Final = "MACHINE_CLOUD"
KEY_ID: Final = "MACHINE_CLOUD_KEY_ID"
KEY: Final = "MACHINE_CLOUD_KEY"
CA: Final = "MACHINE_CLOUD_CA"


@dataclass(frozen=True, slots=True)
class Login:
    """The address of a cloud and a key for it."""

    address: str
    key_id: str
    key: str = field(repr=False)
    ca: str = ""  # path of certificates (PEM) to trust in addition to those of the system

    def connection(self, *, json: bool = False) -> Connection:
        """Return the connection to this cloud."""
        from command.connection import Connection

        ca = Path(self.ca) if self.ca and self.address.startswith("https://") else None
        return Connection(self.address, ca=ca, api_key_id=self.key_id, api_key=self.key, json=json, cloud=True)


def file_of(environment: Mapping[str, str]) -> Path:
    """Return the path of the file: `machine/cloud.json` in XDG_CONFIG_HOME, by default in `~/.config`."""
    config_home = environment.get("XDG_CONFIG_HOME")
    return (Path(config_home) if config_home else Path.home() / ".config") / "machine" / "cloud.json"


def save(login: Login, environment: Mapping[str, str]) -> Path:
    """Save a login, readable only for this user, and return the path."""
    path = file_of(environment)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(asdict(login), file)
    part.replace(path)
    return path


def load(environment: Mapping[str, str]) -> Login:
    """Return the login from the environment, or else from the file. Raises click.UsageError if it is incomplete."""
    values = [environment.get(name, "") for name in (ADDRESS, KEY_ID, KEY)]
    if all(values):
        address, key_id, key = values
        return Login(address, key_id, key, environment.get(CA, ""))
    if any(values):
        missing = ", ".join(name for name, value in zip((ADDRESS, KEY_ID, KEY), values, strict=True) if not value)
        raise click.UsageError(f"{missing} is not set: set all of {ADDRESS}, {KEY_ID} and {KEY}, or none")
    path = file_of(environment)
    try:
        saved = json.loads(path.read_text())
        return Login(saved["address"], saved["key_id"], saved["key"], saved.get("ca", ""))
    except FileNotFoundError:
        raise click.UsageError("not logged in: run `machine cloud login ADDRESS --key-id ID`") from None
    except (OSError, ValueError, KeyError, TypeError):
        raise click.UsageError(f"{path} cannot be read: run `machine cloud login` again") from None


def forget(environment: Mapping[str, str]) -> bool:
    """Remove the saved login, and return whether there was one."""
    path = file_of(environment)
    if not path.exists():
        return False
    path.unlink()
    return True
