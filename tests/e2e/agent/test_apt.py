"""Upgrades with the real apt and dpkg, in a root folder of their own, from two repositories in files."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from agent.system.apt import Apt
from agent.system.programs import LIMIT, Done, SystemPrograms
from agent.system.upgrades import parse_policy
from support.worker import Worker

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("apt-get"), reason="dpkg needs root, and a system with apt"
)
CONFFILE = "etc/tool.conf"
APT_CONF = """\
Dir "{root}";
Dir::State::status "{root}/var/lib/dpkg/status";
Dir::Bin::dpkg "/usr/bin/dpkg";
DPkg::Options {{ "--root={root}"; "--force-script-chrootless"; "--log=/dev/null"; }};
DPkg::Path "";
APT::Sandbox::User "root";
APT::Architecture "amd64";
"""


class RootPrograms(SystemPrograms):
    """Programs that see only the root folder of the test, without systemd."""

    root: Path

    async def run(self, command: Sequence[str], *, limit: float = LIMIT) -> Done:
        if command[0] == "dpkg":
            command = (command[0], f"--root={self.root}", "--log=/dev/null", *command[1:])
        return await super().run(command, limit=limit)

    async def run_apart(self, command: Sequence[str], *, limit: float) -> Done:
        done = await self.run(command, limit=limit)
        return Done(done.status, done.output + done.errors)


def package(root: Path, repository: str, name: str, version: str, depends: str = "", conffile: str = "") -> Path:
    """Build a package and put it into a repository."""
    tree = root / "build" / f"{name}-{version}"
    (tree / "DEBIAN").mkdir(parents=True)
    control = f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: Test <test@example.com>\n"
    control += (f"Depends: {depends}\n" if depends else "") + f"Description: {name}\n"
    (tree / "DEBIAN/control").write_text(control)
    if conffile:
        (tree / CONFFILE).parent.mkdir()
        (tree / CONFFILE).write_text(conffile)
        (tree / "DEBIAN/conffiles").write_text(f"/{CONFFILE}\n")
    folder = root / "repositories" / repository
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}_{version}_all.deb"
    subprocess.run(["dpkg-deb", "-b", tree, file], check=True, capture_output=True)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    with (folder / "Packages").open("a") as index:
        index.write(f"{control}Filename: ./{file.name}\nSize: {file.stat().st_size}\nSHA256: {digest}\n\n")
    return file


def release(root: Path, repository: str, archive: str, codename: str) -> None:
    folder = root / "repositories" / repository
    data = (folder / "Packages").read_bytes()
    (folder / "Release").write_text(
        f"Origin: Acme\nLabel: Acme\nSuite: {archive}\nCodename: {codename}\nDate: Mon, 01 Jan 2024 00:00:00 UTC\n"
        f"SHA256:\n {hashlib.sha256(data).hexdigest()} {len(data)} Packages\n"
    )


def dpkg(root: Path, *arguments: str) -> None:
    subprocess.run(["dpkg", f"--root={root}", "--log=/dev/null", *arguments], check=True, capture_output=True)


def query(root: Path, form: str, *names: str) -> str:
    command = ["dpkg-query", f"--admindir={root}/var/lib/dpkg", "-W", "-f", form, *names]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def installed(root: Path) -> dict[str, str]:
    lines = query(root, "${Package} ${Version}\n").splitlines()
    return {name: version for name, _, version in (line.partition(" ") for line in lines)}


@pytest.fixture
async def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Apt]:
    root = tmp_path
    for folder in ("etc/apt/preferences.d", "etc/apt/apt.conf.d", "var/lib/apt/lists/partial", "run"):
        (root / folder).mkdir(parents=True)
    for folder in ("var/cache/apt/archives/partial", "var/lib/dpkg/updates", "var/lib/dpkg/info", "var/log/apt"):
        (root / folder).mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    old = [package(root, "old", name, "1.0") for name in ("ordinary", "safe", "needy", "pinned")]
    old.append(package(root, "old", "tool", "1.0", conffile="color=red\n"))
    dpkg(root, "--force-script-chrootless", "-i", *map(str, old))
    for name in ("ordinary", "safe", "pinned"):
        package(root, "main", name, "1.2")
    package(root, "main", "addition", "1.0")
    package(root, "security", "safe", "1.1")
    package(root, "security", "tool", "1.1", conffile="color=blue\n")
    package(root, "security", "needy", "1.1", depends="addition")
    release(root, "main", "stable", "acme")
    release(root, "security", "stable-security", "acme-security")
    sources = [f"deb [trusted=yes] file:{root}/repositories/{name} ./\n" for name in ("main", "security")]
    (root / "etc/apt/sources.list").write_text("".join(sources))
    (root / "etc/apt/preferences").write_text("Package: pinned\nPin: version 1.0\nPin-Priority: 1001\n")
    (root / CONFFILE).write_text("color=green\n")  # changed by a person
    (root / "apt.conf").write_text(APT_CONF.format(root=root))
    monkeypatch.setenv("APT_CONFIG", str(root / "apt.conf"))
    worker = Worker("tests")
    async with worker.opened():
        programs = RootPrograms(root / "run/log", worker)
        programs.root = root
        yield Apt(programs, worker.run, root / "run", root)


async def test_security_upgrades_use_no_other_repository(apt: Apt, tmp_path: Path) -> None:
    assert await apt.upgrade(security=True) == 2
    # `safe` 1.2 is newer but not from the security repository, and `needy` depends on a package from another one.
    expected = {"ordinary": "1.0", "safe": "1.1", "needy": "1.0", "pinned": "1.0", "tool": "1.1"}
    assert installed(tmp_path) == expected
    assert (tmp_path / CONFFILE).read_text() == "color=green\n"


async def test_all_packages_are_upgraded_with_new_dependencies(apt: Apt, tmp_path: Path) -> None:
    assert await apt.upgrade(security=False) == 5
    expected = {"ordinary": "1.2", "safe": "1.2", "needy": "1.1", "pinned": "1.0", "tool": "1.1", "addition": "1.0"}
    assert installed(tmp_path) == expected
    assert await apt.upgrade(security=False) == 0


async def test_a_package_that_was_left_unpacked_is_configured_first(apt: Apt, tmp_path: Path) -> None:
    file = tmp_path / "repositories/security/tool_1.1_all.deb"
    dpkg(tmp_path, "--unpack", str(file))
    assert query(tmp_path, "${db:Status-Status}", "tool") == "unpacked"
    await apt.upgrade(security=True)
    assert query(tmp_path, "${db:Status-Status}", "tool") == "installed"
    assert (tmp_path / CONFFILE).read_text() == "color=green\n"


async def test_the_real_policy_is_understood(apt: Apt) -> None:
    await apt.update()
    repositories = parse_policy(await apt.policy())
    assert {repository.codename: repository.is_security for repository in repositories} == {
        "acme": False,
        "acme-security": True,
    }
