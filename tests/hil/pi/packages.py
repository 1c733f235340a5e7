"""Unpack Debian packages of another architecture or release into a folder, without changing this computer's apt."""

from __future__ import annotations

import re
from pathlib import Path

from tests.hil.image.steps import BuildError, command

SOURCES = (Path("/etc/apt/sources.list.d/debian.sources"), Path("/etc/apt/sources.list"))
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def _archive() -> str:
    """Return the address from which this computer downloads Debian packages."""
    for path in SOURCES:
        match = re.search(
            r"^(?:URIs:|deb(?: \[[^]]*\])?) *(\S+)", path.read_text() if path.exists() else "", re.MULTILINE
        )
        if match is not None:
            return match[1]
    raise BuildError(f"no package sources in {' or '.join(map(str, SOURCES))}")


class Packages:
    """A separate apt in `folder`, which must be removed after use: it names the archive."""

    def __init__(self, folder: Path, architecture: str, suites: list[str], *, sources: bool = False) -> None:
        self._folder = folder
        self._config = folder / "apt.conf"
        for name in ("lists/partial", "cache/archives/partial", "state"):
            (folder / name).mkdir(parents=True)
        (folder / "state" / "status").touch()
        lines = [f"deb [arch={architecture} signed-by={KEYRING}] {_archive()} {suite} main\n" for suite in suites]
        if sources:
            lines += [f"deb-src [signed-by={KEYRING}] {_archive()} {suite} main\n" for suite in suites]
        (folder / "sources.list").write_text("".join(lines))
        self._config.write_text(
            f'Dir::State "{folder}/state"; Dir::State::status "{folder}/state/status";\n'
            f'Dir::State::lists "{folder}/lists"; Dir::Cache "{folder}/cache";\n'
            f'Dir::Etc::sourcelist "{folder}/sources.list"; Dir::Etc::sourceparts "-";\n'
            f'APT::Architecture "{architecture}"; APT::Architectures {{ "{architecture}"; }};\n'
            'APT::Install-Recommends "false"; APT::Sandbox::User "root";\n'
        )

    async def update(self) -> None:
        """Download the lists of packages."""
        await self._apt("apt-get", "-qq", "update")

    async def depends(self, name: str) -> str:
        """Return the first dependency of a package."""
        match = re.search(r"Depends: (\S+)", await self._apt("apt-cache", "depends", name))
        if match is None:
            raise BuildError(f"apt knows no {name}")
        return match[1]

    async def unpack(self, target: Path, *names: str, closure: bool = True, release: str = "") -> None:
        """Download packages, with `closure` including all dependencies, and unpack them into `target`."""
        chosen = ["-t", release] if release else []
        archives = self._folder / "cache" / "archives"
        for old in archives.glob("*.deb"):
            old.unlink()
        if closure:
            await self._apt("apt-get", "-qq", "-y", *chosen, "--download-only", "install", *names)
            where = archives
        else:
            where = self._folder / "downloads"
            where.mkdir(exist_ok=True)
            for old in where.glob("*.deb"):
                old.unlink()
            await self._apt("apt-get", "-qq", "download", *names, cwd=where)
        for deb in sorted(where.glob("*.deb")):
            await command("dpkg", "-x", deb, target)  # creates one folder, but not its parents

    async def source(self, target: Path, name: str) -> None:
        """Download the source package `name` into `target`; `sources` must be set."""
        await self._apt("apt-get", "-qq", "--download-only", "source", name, cwd=target)

    async def _apt(self, *words: str, cwd: Path | None = None) -> str:
        return await command(
            *words, cwd=cwd, env={"APT_CONFIG": str(self._config), "DEBIAN_FRONTEND": "noninteractive"}
        )
