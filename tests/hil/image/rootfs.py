"""The guest's file system: a minimal Debian with the project's locked Python packages and the command agent."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

from tests.hil.image.contents import (
    INIT,
    MASKED_UNITS,
    ORDER,
    PACKAGES,
    SCENARIO,
    SCENARIO_OPTION,
    SITE,
    SOURCE,
    SOURCE_OPTION,
    USER,
)
from tests.hil.image.places import ROOT, WORK
from tests.hil.image.steps import BuildError, command, step

TREE = WORK / "root"
WHEELS = WORK / "site"

AGENT_UNIT = f"""[Unit]
Description=Command agent of the test rig
DefaultDependencies=no
After=systemd-udevd.service local-fs.target systemd-modules-load.service
ConditionKernelCommandLine=!{SCENARIO_OPTION}

[Service]
Environment=PYTHONPATH={SITE}
ExecStart=/usr/bin/python3 /opt/agent.py
Restart=always
KillMode=process

[Install]
WantedBy=sysinit.target
"""

SCENARIO_UNIT = f"""[Unit]
Description=Scenario of a test with time travel
After=multi-user.target
ConditionKernelCommandLine={SCENARIO_OPTION}

[Service]
ExecStart={SCENARIO}
"""

FILES = {
    "etc/systemd/system/rig-agent.service": AGENT_UNIT,
    "etc/systemd/system/rig-scenario.service": SCENARIO_UNIT,
    "etc/systemd/journald.conf": "[Journal]\nStorage=volatile\nForwardToConsole=no\n",
    "etc/hostname": "guest\n",
    "etc/hosts": "127.0.0.1 localhost guest\n::1 localhost\n",
    "etc/machine-id": "0123456789abcdef0123456789abcdef\n",  # fixed, so that no boot is a first boot
    "etc/modules-load.d/rig.conf": "virtio_console\nvirtio_net\n9p\n9pnet_virtio\n",
    "etc/fstab": "tmpfs /tmp tmpfs defaults 0 0\n",
    "usr/lib/python3/dist-packages/rig.pth": f"{SITE}\n{SOURCE}\n",
    "usr/local/bin/machine-server": '#!/bin/sh\nexec /usr/bin/python3 -m runtime.server.cli "$@"\n',
    "usr/local/bin/machine": '#!/bin/sh\nexec /usr/bin/python3 -m command.cli "$@"\n',
}

INIT_SCRIPT = f"""#!/bin/sh
# The first process of a guest without systemd. It reaps orphans while it waits for the agent.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin PYTHONPATH={SITE}
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mountpoint -q /dev || mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts -o gid=5,mode=620 devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/lock
mount -t tmpfs tmpfs /tmp
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tracefs tracefs /sys/kernel/tracing
mount -t configfs configfs /sys/kernel/config
hostname guest
cd /
/usr/lib/systemd/systemd-udevd --daemon
grep -q {SCENARIO_OPTION}= /proc/cmdline && {SCENARIO}
while :; do /usr/bin/python3 /opt/agent.py; done
"""

SCENARIO_SCRIPT = f"""#!/bin/sh
# Run the scenario of a test with time travel, without a host that answers, and end the machine.
exec > /dev/console 2>&1
for word in $(cat /proc/cmdline); do
    case $word in
    {SOURCE_OPTION}=*) source=${{word#*=}} ;;
    {SCENARIO_OPTION}=*) folder=${{word#*=}} ;;
    esac
done
mkdir -p {ORDER}
mount -t hostfs none {SOURCE} -o "$source,ro"
mount -t hostfs none {ORDER} -o "$folder"
ip link set lo up
cd / && /usr/bin/python3 -m tests.hil.guest.scenario {ORDER}
systemctl poweroff --force --force
"""

FORGOTTEN = ("etc/apt", "etc/resolv.conf", "var/lib/apt", "var/cache/*", "var/log/*", "usr/lib/udev/hwdb.*")
"""Files that contain the source of the packages, and files that are unused in the guest."""


def suite() -> str:
    """Return the name of this computer's Debian release, which the guest shares so that both have the same Python."""
    release = Path("/etc/os-release").read_text()
    codename = re.search(r"^VERSION_CODENAME=(\w+)$", release, re.MULTILINE)
    if codename is None or "ID=debian" not in release.splitlines():
        raise BuildError("the guest is built on Debian (12 or newer) only; this is something else")
    return codename[1]


def _debian_sources() -> bytes:
    """Return the Debian package sources of this computer."""
    files = [Path("/etc/apt/sources.list.d/debian.sources"), Path("/etc/apt/sources.list")]
    texts = [path.read_text() for path in files if path.exists()]
    if not any(text.strip() for text in texts):
        raise BuildError(f"no package sources in {' or '.join(map(str, files))}")
    return "\n".join(line for line in texts[0].splitlines() if not line.startswith("#")).encode()


async def install_debian() -> None:
    """Create the tree from Debian's packages, without information about their source."""
    shutil.rmtree(TREE, ignore_errors=True)
    sources = WORK / "debian.sources"
    sources.write_bytes(_debian_sources())
    excluded = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("man", "locale", "doc", "info", "zoneinfo")]
    try:
        async with step(f"Debian {suite()}, {len(PACKAGES)} packages and what they need"):
            await command(
                *("mmdebstrap", "--variant=minbase", "--mode=root", "--format=directory"),
                *('--aptopt=Apt::Install-Recommends "false"', *excluded),
                f"--include={','.join(PACKAGES)}",
                *(suite(), TREE, sources),
            )
    finally:
        sources.unlink()
    for name in FORGOTTEN:
        for path in TREE.glob(name):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()


async def install_wheels() -> None:
    """Install the locked packages into a folder, with verified digests, and compile them."""
    shutil.rmtree(WHEELS, ignore_errors=True)
    async with step("Python packages of requirements/test.lock"):
        await command(
            *(sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"),
            *("--target", str(WHEELS), "--no-compile", "--require-hashes", "--only-binary=:all:"),
            *("-r", str(ROOT / "requirements" / "test.lock")),
        )
    async with step("Python packages compiled"):
        env = {"PYTHONDONTWRITEBYTECODE": ""}
        await command(sys.executable, "-m", "compileall", "-q", "-j2", "-d", SITE, WHEELS, env=env)


def check_python() -> None:
    """Raise BuildError unless the guest's Python has the version that compiled and selected the packages."""
    names = {path.name for path in (TREE / "usr" / "bin").glob("python3.*")}
    mine = f"python3.{sys.version_info.minor}"
    if mine not in names:
        raise BuildError(
            f"Debian {suite()} has {', '.join(sorted(names))}, and this is {mine}: "
            f"make the virtual environment with Debian's Python (rm -r .venv; PYTHON=/usr/bin/python3 make hil)"
        )


def complete_tree() -> None:
    """Add the project's own files to the tree."""
    site = TREE / SITE.lstrip("/")
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(WHEELS, site, symlinks=True)
    (TREE / SOURCE.lstrip("/")).mkdir(parents=True, exist_ok=True)
    scripts = {INIT.lstrip("/"): INIT_SCRIPT, SCENARIO.lstrip("/"): SCENARIO_SCRIPT}
    for name, text in {**FILES, **scripts}.items():
        path = TREE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_text(text)
        if "bin/" in name:
            path.chmod(0o755)
    for name in ("agent.py", "interpreter.py"):
        shutil.copy(ROOT / "tests" / "hil" / "guest" / name, TREE / "opt" / name)
    units = TREE / "etc/systemd/system"
    (units / "sysinit.target.wants").mkdir(exist_ok=True)
    _link("../rig-agent.service", units / "sysinit.target.wants" / "rig-agent.service")
    (units / "multi-user.target.wants").mkdir(exist_ok=True)
    _link("../rig-scenario.service", units / "multi-user.target.wants" / "rig-scenario.service")
    for unit in MASKED_UNITS:
        _link("/dev/null", units / unit)
    name, number = USER
    for file, line in (
        ("passwd", f"{name}:x:{number}:{number}::/home/{name}:/bin/bash"),
        ("group", f"{name}:x:{number}:"),
        ("shadow", f"{name}:!::0:99999:7:::"),
    ):
        path = TREE / "etc" / file
        if not re.search(rf"^{name}:", path.read_text(), re.MULTILINE):
            path.write_text(f"{path.read_text()}{line}\n")
    home = TREE / "home" / name
    home.mkdir(exist_ok=True)
    os.chown(home, number, number)


def _link(target: str, path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(target)
