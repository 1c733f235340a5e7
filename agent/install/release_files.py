"""The release files of an installation: from the disk, or from the machine's cloud. The functions block.

| a program is taken from | if |
|---|---|
| a file | `--agent` or `--server` names it; for machine-agent also the file that runs, if the target has its platform |
| the disk of the target | a release of it is installed there |
| the cloud | the target has credentials; what the cloud offers to this machine is downloaded |

Each file is verified as an update verifies it: identity, platform and hash, and the signature if a root is pinned.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import trio

from agent.actions import disk
from agent.actions.catalog import ReleaseCatalog, identify_file
from agent.control.fetch import CALL_LIMIT, Fetched, Versions, fetch
from agent.install.credentials import cloud_of
from agent.install.source import PACKAGE, Staged
from agent.install.target import Say
from agent.launch.links import is_usable
from agent.layout import AGENT, PROGRAMS, Layout
from agent.releases.chain import has_pin, pin
from agent.releases.choose import Keep, Read, Refuse, ReleaseQuestion, choose, choose_file
from agent.releases.header import check_identity, read_identity
from agent.releases.signed import Signed
from agent.releases.transport import Transport
from agent.releases.trust import Trust
from agent.releases.unpack import unpack
from agent.releases.web import Web
from agent.system.host import host_facts
from agent.update import store
from agent.update.record import Release, ReleaseOffer, ReleaseSlots, UpdateRecord
from rpc.api import ApiClient
from schema import ErrorKind, MachineError
from support import Worker, version
from support.foreign import erase
from uplink import CloudAddress, address_of
from uplink.releases import Header

FILE: Final = "MACHINE_RELEASE_FILE"
"""Variable in which a release file that is executed names itself."""
FOLDER: Final = "MACHINE_RELEASE_FOLDER"
"""Variable in which it names the folder into which it has unpacked itself."""
OPTIONS: Final[Mapping[str, str]] = {AGENT: "--agent", "machine-server": "--server"}
"""The option that names the file of each program."""

DOWNLOAD_LIMIT: Final = 3600.0
"""Seconds for all downloads of an installation; the next one continues them."""

_NOT_INSTALLED: Final = "0" * 64  # no file has this hash


class InstallFile(msgspec.Struct, frozen=True):
    """A verified release file on this computer's disk."""

    program: str
    path: Path
    release: Release


def own_file(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the release file that was executed to start this process; None if it is another kind of installation."""
    path = environment.get(FILE, "")
    return Path(path) if path else None


def is_release(executable: Path) -> bool:
    """Return whether a Python interpreter belongs to an unpacked release."""
    folder = executable.parent.parent
    return (folder / "run").is_file() and (folder / "contents.json").is_file()


def read_release(program: str, path: Path, platform: str) -> InstallFile:
    """Return a release file after checking its program and platform.

    Raises MachineError: INVALID if it is the file of another program or platform, or no release file; NOT_FOUND.
    """
    path = path.absolute()
    identified = identify_file(path)
    header = identified.header
    if header.program != program:
        raise MachineError(
            f"{path} is a release of {header.program}",
            kind=ErrorKind.INVALID,
            remedy=f"name a release file of {program} with {OPTIONS[program]}",
        )
    if header.platform != platform:
        raise MachineError(
            f"{path} is for {header.platform}, and the system is {platform}",
            kind=ErrorKind.INVALID,
            remedy=f"use the release file of {program} for {platform}",
        )
    release = Release(header.version, identified.sha256, identified.size, path.as_uri(), header.platform)
    return InstallFile(program, path, release)


@dataclass
class ReleaseSource:
    """The releases of an installation. `files` are those on the disk; `fetch` adds what the cloud offers."""

    files: dict[str, InstallFile]
    """By program, as `read_release` returns them."""
    platform: str
    """The platform of the target, such as linux/aarch64."""
    credentials: Path
    """File with the machine's credentials; it need not exist."""
    root: bytes | None = None
    """root.json that is about to be pinned."""
    system: Path = Path("/")
    """Root folder of the target."""
    _offered: dict[str, InstallFile] = field(default_factory=dict)

    @property
    def space(self) -> int:
        """Bytes that staging `files` needs."""
        return sum(file.release.size for file in self.files.values()) * (1 + disk.UNPACKED)

    def fetch(self, layout: Layout, say: Say) -> None:
        """Download what is missing, and verify signatures. The folders must exist.

        Raises MachineError if the cloud cannot be reached or offers nothing, or a file is not signed. A download that
        was interrupted is continued by the next call.
        """
        missing = [name for name in PROGRAMS if name not in self.files and _installed(layout, name) is None]
        pinned = self.root is not None or has_pin(layout.trust)
        if missing or (pinned and self.files):
            address = self._address(missing)
            trio.run(self._ask, layout, address, missing, say)

    def stage(self, layout: Layout) -> list[Staged]:
        """Unpack all releases into their slots; return them, and those that were installed before.

        Must not run while an agent runs, which deletes files that it does not know.
        """
        return [self._stage(layout, name) for name in PROGRAMS]

    def _stage(self, layout: Layout, name: str) -> Staged:
        file = self.files.get(name) or self._offered.get(name)
        if file is None:
            release = _installed(layout, name)
            assert release is not None, f"`fetch` did not provide {name}"
            return Staged(name, release)
        download = disk.download_path(layout, name, file.release.sha256)
        if not is_usable(layout, name, file.release.sha256):
            disk.check_space(layout, name, file.release)
            shutil.copyfile(file.path, download)
            try:
                disk.verify(layout, name, file.release)
                disk.stage(layout, name, file.release, unpack)
            finally:
                download.unlink(missing_ok=True)
        if name in self._offered:
            file.path.unlink(missing_ok=True)
        return Staged(name, file.release)

    def _address(self, missing: list[str]) -> CloudAddress:
        try:
            text = self.credentials.read_bytes()
        except OSError:
            what = f"no release of {missing[0]} is installed" if missing else "the signatures of the files are needed"
            remedy = f"name a release file with {OPTIONS[missing[0]]}, or " if missing else ""
            raise MachineError(
                f"{what}, and there are no credentials for the cloud in {self.credentials}",
                kind=ErrorKind.PRECONDITION,
                remedy=f"{remedy}name the credentials file from the machine's page with --credentials",
            ) from None
        return address_of(cloud_of(self.credentials, text), self.credentials.parent)

    async def _ask(self, layout: Layout, address: CloudAddress, missing: list[str], say: Say) -> None:
        worker = Worker("installation")
        async with worker.opened():
            web = Web(address, worker)
            with tempfile.TemporaryDirectory(dir=layout.downloads, prefix="install-trust-") as folder:
                trusted = layout.trust
                if self.root is not None:
                    trusted = Path(folder)
                    await worker.run(partial(pin, trusted, self.root))
                transport = Transport(web, address.part)
                releases = ReleaseCatalog(Trust(trusted, worker), transport, web, worker, layout.downloads)
                with _limited("the signed releases", CALL_LIMIT * 4):
                    signed = await releases.signed()
                if signed is not None:
                    for file in self.files.values():
                        _check_signed(file, signed, datetime.now(UTC))
                if not missing:
                    return
                fetched = await self._fetched(address)
                for name in missing:
                    self._offered[name] = await self._download(layout, name, fetched, releases, signed, address, say)

    async def _fetched(self, address: CloudAddress) -> Fetched:
        host = host_facts(self.system, self.platform)
        try:
            with _limited("what the cloud offers", CALL_LIMIT):
                async with address.channel() as channel:
                    return await fetch(ApiClient(channel), address.part, host, Versions(agent_installed=version()))
        except OSError as error:
            raise _unreachable(address, str(error) or repr(error)) from None
        except MachineError as error:
            if error.kind is ErrorKind.UNAVAILABLE:
                raise _unreachable(address, error.message) from None
            raise

    async def _download(
        self,
        layout: Layout,
        name: str,
        fetched: Fetched,
        releases: ReleaseCatalog,
        signed: tuple[Signed, ...] | None,
        address: CloudAddress,
        say: Say,
    ) -> InstallFile:
        desired = fetched.agent if name == AGENT else fetched.server
        asked = ReleaseQuestion("stable", desired, signed, address.part, self.platform, explicit=True)
        record = UpdateRecord(name, ReleaseSlots(Release("", _NOT_INSTALLED, 0, "", self.platform)))
        choice = choose(record, asked)
        if isinstance(choice, Read):
            with _limited(f"the file of {name}", DOWNLOAD_LIMIT):
                read = await releases.identify(choice.url)
            choice = choose_file(record, asked, choice, *read)
        if isinstance(choice, Refuse):
            raise MachineError(str(choice.problem), kind=ErrorKind.PRECONDITION)
        if not isinstance(choice, ReleaseOffer):
            raise _nothing_offered(name, self.platform, address, choice)
        release = choice.release
        disk.check_space(layout, name, release)
        say(f"{name} {release.version}: downloading from {address.url}")
        path = layout.downloads / f"install-{name}"
        with _limited(f"the file of {name}", DOWNLOAD_LIMIT):
            await releases.download(release, path)
        check_identity(read_identity(path), Header(name, release.version, self.platform))
        return InstallFile(name, path, msgspec.structs.replace(release, size=path.stat().st_size))


def forget_unpacked(environment: Mapping[str, str] = os.environ, executable: str = sys.executable) -> None:
    """Delete the folder into which the executed release file has unpacked itself; what is installed replaces it.

    Nothing is deleted unless this process runs from that folder. It must end soon: its modules are gone.
    """
    folder = Path(environment.get(FOLDER) or "/nonexistent")
    if not folder.is_absolute() or folder not in Path(executable).parents or not (folder / "run").is_file():
        return
    doomed = folder.with_name(f".{folder.name}.removed")
    try:
        erase(doomed)
        folder.replace(doomed)
        erase(doomed)
        folder.parent.rmdir()
    except OSError:
        pass  # other releases are in the cache, or it cannot be written: nothing depends on it


def _installed(layout: Layout, name: str) -> Release | None:
    """Return the release of a program that is installed as a file and can be started."""
    try:
        record = store.load(layout.record(name)).record or disk.rebuild(layout, name, time.time())
    except (MachineError, OSError):
        return None
    if record is None or record.slots.current.origin.startswith(PACKAGE):
        return None
    return record.slots.current if is_usable(layout, name, record.slots.current.sha256) else None


def _check_signed(file: InstallFile, signed: tuple[Signed, ...], now: datetime) -> None:
    release = file.release
    for entry in signed:
        if (entry.sha256, entry.custom.program, entry.custom.platform) == (
            release.sha256, file.program, release.platform,
        ):  # fmt: skip
            return
    raise MachineError(
        f"{file.path} is not signed by the organization whose root.json is pinned ({now:%Y-%m-%d})",
        kind=ErrorKind.PERMISSION,
        remedy="publish the file with `machine cloud releases upload`, or use one that is published",
    )


def _nothing_offered(name: str, platform: str, address: CloudAddress, choice: Keep) -> MachineError:
    return MachineError(
        f"{address.url} offers no release of {name} for {platform}: {choice.reason}",
        kind=ErrorKind.NOT_FOUND,
        remedy=f"publish one with `machine cloud releases upload` and `promote`, or name a file with {OPTIONS[name]}",
    )


def _unreachable(address: CloudAddress, reason: str) -> MachineError:
    return MachineError(
        f"the cloud at {address.url} cannot be reached: {reason}",
        kind=ErrorKind.UNAVAILABLE,
        remedy="check the network, or name release files with --agent and --server",
    )


@contextmanager
def _limited(what: str, seconds: float) -> Iterator[None]:
    """Limit the time of what is inside. TIMEOUT with `what` did not arrive."""
    try:
        with trio.fail_after(seconds):
            yield
    except trio.TooSlowError:
        raise MachineError(
            f"the cloud did not send {what} within {seconds:g} s",
            kind=ErrorKind.TIMEOUT,
            remedy="check the network, and repeat the installation: it continues",
        ) from None
