"""The cloud of simulated devices: releases that behave well or badly, and what their downloads are like."""

from __future__ import annotations

import hashlib
import io
import json
import random
import sys
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import trio

from agent.update.record import Release
from schema.errors import ErrorKind, MachineError

CONTENT = "program.exe" if sys.platform == "win32" else "run"
"""The file of an unpacked release that has its content."""
PLATFORM = "linux/x86_64"
START_TIMEOUT = 600.0  # of machine-server, unless a setting changes it


@dataclass(frozen=True)
class Behavior:
    """How a release behaves when it runs."""

    serves_after: float | None = 2.0  # seconds; None: it never answers
    crashes_after: float | None = None  # seconds; None: it does not
    configured: bool = True  # it can fetch and read its configuration
    fills_disk: bool = False  # all space that is free while it runs; it stays full then

    def is_good(self, start_timeout: float = START_TIMEOUT) -> bool:
        """Return whether it may be confirmed."""
        serves = self.serves_after is not None and self.serves_after < start_timeout
        return serves and self.crashes_after is None and self.configured and not self.fills_disk


@dataclass
class Published:
    """A release in the cloud."""

    release: Release
    content: bytes  # as the cloud delivers it
    genuine: bytes  # as it was built
    behavior: Behavior = Behavior()
    withdrawn: bool = False


def header(program: str, version: str, platform: str) -> bytes:
    text = json.dumps({"program": program, "version": version, "platform": platform})
    return f"#!/bin/sh\n# machine-release {text}\n".encode()


def sealed(content: bytes) -> bytes:
    """Return a content with its checksum, as that of an archive."""
    return content + zlib.crc32(content).to_bytes(4, "big")


@dataclass
class Cloud:
    """Releases by hash, and whether the cloud can be reached."""

    published: dict[str, Published] = field(default_factory=dict)
    reachable: bool = True

    def publish(
        self,
        program: str,
        version: str,
        behavior: Behavior | None = None,
        *,
        claims: dict[str, str] | None = None,
        deliver: Callable[[bytes], bytes] = lambda content: content,
        platform: str = PLATFORM,
    ) -> Release:
        """Publish a release. `claims` are other values in its header; `deliver` damages what is downloaded."""
        names = {"program": program, "version": version, "platform": platform, **(claims or {})}
        genuine = sealed(header(**names) + f"{program} {version}".encode() + bytes(2000))
        sha256 = hashlib.sha256(genuine).hexdigest()
        release = Release(version, sha256, len(genuine), f"/{program}/{version}", platform)
        self.published[sha256] = Published(release, deliver(genuine), genuine, behavior or Behavior())
        return release

    def behavior(self, sha256: str) -> Behavior:
        return self.published[sha256].behavior


@dataclass
class CloudSource:
    """Implements Source: a download takes some seconds, and ends in the middle when the cloud goes away."""

    cloud: Cloud
    rng: random.Random
    occurred: Counter[str] = field(default_factory=Counter)

    async def check(self, release: Release) -> None:
        await self._reach()
        if self.cloud.published[release.sha256].withdrawn:
            raise MachineError("it was withdrawn", kind=ErrorKind.NOT_FOUND)

    async def download(self, release: Release, file: Path) -> None:
        content = io.BytesIO(self.cloud.published[release.sha256].content)
        with file.open("ab") as output:
            content.seek(output.tell())
            while chunk := content.read(1000):
                await self._reach()
                output.write(chunk)
                output.flush()
                if output.tell() > release.size:
                    output.truncate(0)
                    raise MachineError("the file is too long", kind=ErrorKind.INVALID)
            size = output.tell()
        if size < release.size:
            raise MachineError("the connection was closed", kind=ErrorKind.UNAVAILABLE)

    async def _reach(self) -> None:
        await trio.sleep(self.rng.uniform(0.1, 5))
        if not self.cloud.reachable:
            self.occurred["cloud is away"] += 1
            raise MachineError("the cloud cannot be reached", kind=ErrorKind.UNAVAILABLE)


def unpack(file: Path, folder: Path) -> None:
    """Implements Unpack for the files of `publish`, which end with a checksum as those of `make release` do."""
    content = file.read_bytes()
    if zlib.crc32(content[:-4]).to_bytes(4, "big") != content[-4:]:
        raise MachineError(f"{file.name} is damaged", kind=ErrorKind.INVALID)
    part = folder.with_name(f"{folder.name}.tmp")
    part.mkdir(exist_ok=True)
    (part / CONTENT).write_bytes(content)
    (part / CONTENT).chmod(0o755)
    if CONTENT != "run":
        (part / "run").write_text(json.dumps([CONTENT]))
    part.replace(folder)
