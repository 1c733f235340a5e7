"""Releases of programs: names, limits and metadata that cloud, agent and commands share. Pure.

An organization has one TUF repository (The Update Framework, specification 1.0). Root and targets are signed with keys
that only people hold, snapshot and timestamp with keys of the cloud. The target of a release is called
`<program>/<version>/<platform>`, with `-` for the `/` of the platform, and its `custom` field is a `Custom`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

import msgspec

from schema import ErrorKind, MachineError, SemanticVersion

AGENT: Final = "machine-agent"
SERVER: Final = "machine-server"
PROGRAMS: Final = (AGENT, SERVER)
STABLE: Final = "stable"
DEV: Final = "dev"
CHANNELS: Final = (STABLE, DEV)
PROBLEMS_KEY: Final = "version_problems"
"""Key that the cloud adds to `advanced_settings` for an agent: what is wrong with the versions of its configuration."""

ROOT: Final = "root"
TARGETS: Final = "targets"
SNAPSHOT: Final = "snapshot"
TIMESTAMP: Final = "timestamp"
OFFLINE: Final = (ROOT, TARGETS)
"""Roles whose keys only people hold."""
ONLINE: Final = (SNAPSHOT, TIMESTAMP)
"""Roles whose keys the cloud holds."""

KEY_TYPE: Final = "ed25519"
"""Type and scheme of all keys."""

LIFETIMES: Final = {
    ROOT: timedelta(days=730),
    TARGETS: timedelta(days=365),
    SNAPSHOT: timedelta(days=7),
    TIMESTAMP: timedelta(days=1),
}
"""Time from the signature to the expiry of each role's metadata; the cloud refuses uploads with a later expiry."""

MAX_TARGETS: Final = 500
"""Targets of a repository: each platform of each version."""
MAX_METADATA: Final = 512 * 1024
"""Bytes of one metadata file."""
MAX_KEYS: Final = 20
"""Keys, and signatures, of one role."""
MAX_FILE: Final = 256 * 1024 * 1024
"""Bytes of a release file."""
MAX_HEADER: Final = 4096
"""Bytes at the beginning of a release file that contain the lines of its header which are read."""

METADATA_PATH: Final = "/machine/v1/parts/{part}/releases/metadata/{name}"
"""Path of a metadata file for the machine with the id `part`: `timestamp.json`, `3.snapshot.json`, `1.root.json`."""
TARGETS_PATH: Final = "/machine/v1/parts/{part}/releases/targets/{path}"
"""Path of a target; its last segment may have the hash as a prefix: `machine-server/1.2.3/<sha256>.linux-x86_64`."""
RELEASE_FILES_PATH: Final = "/api/v1/release-files/"
"""Beginning of the paths to which people upload release files."""

STEP_WORDS: Final[Mapping[str, str]] = {
    "resolve": "looking up the release",
    "download": "downloading",
    "verify": "checking the download",
    "stage": "unpacking",
    "wait": "ready, waiting for maintenance",
    "switch": "switching",
    "trial": "on trial",
    "roll_back": "rolling back",
    "recover": "rolled back, waiting for the former version to serve",
}
"""Steps of an update, as people see them: see agent.update.record.Step."""

CHECK: Final = "check"
"""Kind of a request to an agent: ask for settings and versions now."""
UPDATE: Final = "update"
"""Kind of a request to an agent: do not wait for maintenance with the update of a program."""
REQUEST_WAIT: Final = 50.0
"""Seconds for which the cloud lets an agent wait for requests; proxies usually end calls after 60."""

_PLATFORM: Final = re.compile(r"linux/(x86_64|aarch64|armv7l|armv6l)")
_MACHINES: Final = {"amd64": "x86_64", "arm64": "aarch64", "arm32v7": "armv7l", "arm32v6": "armv6l"}
_MARK: Final = b"# machine-release "


class Custom(msgspec.Struct, frozen=True, omit_defaults=True):
    """The field `custom` of a target. Unknown fields are ignored, so that newer programs can add some."""

    program: str
    version: str
    platform: str  # such as linux/aarch64
    channels: tuple[str, ...] = ()
    minimum: str = ""  # the lowest version from which an update to this release is supported; "" for any

    def __post_init__(self) -> None:
        check_program(self.program)
        check_version(self.version)
        check_platform(self.platform)
        if self.minimum:
            check_version(self.minimum)
        if unknown := sorted(set(self.channels) - set(CHANNELS)):
            raise ValueError(f"there is no channel {unknown[0][:60]!r}: use {' or '.join(CHANNELS)}")
        if len(set(self.channels)) != len(self.channels):
            raise ValueError("a channel is listed twice")

    @property
    def path(self) -> str:
        """Name of the target."""
        return f"{self.program}/{self.version}/{self.platform.replace('/', '-')}"


class Header(msgspec.Struct, frozen=True):
    """What the header of a release file says about it."""

    program: str
    version: str
    platform: str


def check_program(program: str) -> None:
    """Raise ValueError unless a program of this name is released."""
    if program not in PROGRAMS:
        raise ValueError(f"there is no program {program[:60]!r}: use {' or '.join(PROGRAMS)}")


def check_version(version: str) -> None:
    """Raise ValueError unless this is a semantic version in its normal form."""
    SemanticVersion.parse(version)


def check_platform(platform: str) -> None:
    """Raise ValueError unless releases exist for this platform."""
    if not _PLATFORM.fullmatch(platform):
        raise ValueError(f"{platform[:60]!r} is not a platform of releases: use for example linux/aarch64")


def normal_platform(platform: str) -> str:
    """Return the name of a platform as releases write it: `linux/arm64` and `Linux/aarch64` are linux/aarch64."""
    system, _, machine = platform.strip().lower().partition("/")
    return f"{system}/{_MACHINES.get(machine, machine)}"


def custom_of(path: str, custom: Any) -> Custom:
    """Return the decoded `custom` field of the target `path`. ValueError if it is invalid or contradicts the path."""
    try:
        decoded = msgspec.convert(custom, Custom)
    except msgspec.ValidationError as error:
        raise ValueError(f"the field `custom` of the target {path[:200]!r} is not valid: {error}") from None
    if decoded.path != path:
        raise ValueError(f"the target {path[:200]!r} contains the release {decoded.path}: its name must be the same")
    return decoded


def read_header(beginning: bytes) -> Header:
    """Return the header of a release file from its first MAX_HEADER bytes; INVALID if it has none or a wrong one."""
    line = beginning.split(b"\n", 2)[1:2]
    if not beginning.startswith(b"#!") or not line or not line[0].startswith(_MARK):
        raise MachineError(
            "the file has no header of a release",
            kind=ErrorKind.INVALID,
            remedy="build it with `make release`, or give --program, --version and --platform",
        )
    try:
        header = msgspec.json.decode(line[0].removeprefix(_MARK), type=Header)
        Custom(header.program, header.version, header.platform)
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise MachineError(f"the header of the release is not valid: {error}", kind=ErrorKind.INVALID) from None
    return header
