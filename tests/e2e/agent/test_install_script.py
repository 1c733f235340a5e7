"""The installer of a cloud, executed as root in a mount namespace of its own, with a real cloud and real curl.

machine-agent is a release file whose program records what it finds.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio

from cloud.web.api.installation import SCRIPT
from tests.e2e.agent.support import APP, Part, new_part
from tests.e2e.cloud.process import CloudProcess, cloud
from tests.e2e.cloud.test_certificates import Secured
from tests.e2e.cloud.test_command import Terminal
from tests.e2e.harness import START_LIMIT_S
from tools.release.pack import pack
from uplink.platforms import platform
from uplink.releases import AGENT, Header, normal_platform

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="installing needs root"),
    pytest.mark.skipif(shutil.which("curl") is None, reason="the installer needs curl: apt-get install curl"),
    pytest.mark.limit(120),
]
SHELLS = ["dash", "busybox sh"]
SHELLS_WITHOUT_APPLETS = ["dash", "bash"]  # busybox executes its own programs instead of those in PATH
LIMIT = START_LIMIT_S

COMPUTER = """\
set -eu
mount -t tmpfs -o size=1g tmpfs /opt
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system
cp -a /etc/. "$FOLDER/etc" 2>/dev/null || mkdir -p "$FOLDER/etc"
mount --bind "$FOLDER/etc" /etc
exec "$@"
"""
"""Makes the computer look like one with systemd and without machine-agent, for the processes of one test."""

RECORDER = """\
#!/bin/sh
if [ "$1" = --version ]; then echo "machine-agent 9.5.0"; exit; fi
{ for word; do echo "$word"; done; } >"$FOLDER/arguments"
env >"$FOLDER/environment"
cat /proc/[0-9]*/cmdline >"$FOLDER/processes" 2>/dev/null
cat /proc/[0-9]*/environ >"$FOLDER/environments" 2>/dev/null
for word; do
    case $word in *machine.json) cp -p "$word" "$FOLDER/credentials"; cp -p "${word%/*}"/*.pem "$FOLDER/" ;; esac
done 2>/dev/null
stat -c '%a %U %n' /opt/.machine-install.* >"$FOLDER/work"
exit "${RESULT:-0}"
"""
SUDO = '#!/bin/sh\nexec "$@"\n'


@dataclass
class World:
    """A cloud that has published machine-agent, and a new computer."""

    running: CloudProcess
    terminal: Terminal
    part: Part
    folder: Path

    async def publish(self, recorder: str = RECORDER) -> None:
        """Publish a machine-agent that records."""
        tree, run = self.folder / "tree", self.folder / "run"
        tree.mkdir()
        run.write_text(recorder)
        run.chmod(0o755)
        packed = pack(Header(AGENT, "9.5.0", normal_platform(platform())), tree, run, self.folder / "out")
        keys = ("--keys", str(self.folder / "keys"))
        await self.terminal("releases", "init", *keys)
        await self.terminal("releases", "upload", str(packed.path), "--channel", "stable", *keys)

    async def line(self) -> str:
        """Return the line that the command prints."""
        return (await self.terminal("install-line", "rover")).splitlines()[0]

    async def execute(
        self, line: str, *, shell: str = "dash", tools: dict[str, str] | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Execute a line on the new computer, with `sh` as the shell that sudo starts."""
        programs = self.folder / "bin"
        shutil.rmtree(programs, ignore_errors=True)
        programs.mkdir()
        for name, text in {"sudo": SUDO, "sh": f'#!/bin/dash\nexec {shell} "$@"\n', **(tools or {})}.items():
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        command = ["unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", COMPUTER, "computer"]
        command += ["/bin/bash", "-c", line]
        values = {"PATH": f"{programs}:/usr/sbin:/usr/bin:/sbin:/bin", "FOLDER": str(self.folder), **environment}
        with trio.fail_after(LIMIT):
            done = await trio.run_process(
                command, env={"HOME": str(self.folder), **values}, stdin=subprocess.DEVNULL, check=False,
                capture_stdout=True, capture_stderr=True,
            )  # fmt: skip
        return subprocess.CompletedProcess(command, done.returncode, done.stdout.decode(), done.stderr.decode())

    def recorded(self, name: str) -> str:
        """Return what machine-agent has recorded; empty if it was not executed."""
        path = self.folder / name
        return path.read_text(errors="replace") if path.exists() else ""


@asynccontextmanager
async def world(folder: Path, *, publish: bool = True) -> AsyncIterator[World]:
    async with cloud(folder / "cloud") as running, running.client() as client:
        terminal = Terminal(running, folder / "home")
        login = ("login", f"http://{running.address}", "--key-id", running.key[0])
        await terminal(*login, MACHINE_CLOUD_KEY=running.key[1])
        computer = World(running, terminal, await new_part(running, client, folder), folder)
        (folder / "etc").mkdir()
        if publish:
            await computer.publish()
        yield computer


def key_in(line: str) -> str:
    return line.partition("MACHINE_API_KEY=")[2].partition('"')[0]


@pytest.mark.parametrize("shell", SHELLS)
async def test_the_line_of_the_command_installs(tmp_path: Path, shell: str) -> None:
    async with world(tmp_path) as computer:
        line = await computer.line()
        done = await computer.execute(line, shell=shell)
        assert done.returncode == 0, done.stderr + done.stdout
        assert "machine-agent is installed" in done.stdout
        words = computer.recorded("arguments").split("\n")
        assert words[:2] == ["--install", "--credentials"]
        credentials = json.loads(computer.recorded("credentials"))["cloud"]
        address = f"http://{computer.running.address}"
        assert credentials == {"id": computer.part.id, "secret": computer.part.secret, "app_address": address}
        assert stat.S_IMODE((tmp_path / "credentials").stat().st_mode) == 0o600
        assert computer.recorded("work").startswith("700 root")
        seen = computer.recorded("processes")
        assert "/opt/.machine-install." in seen
        key = key_in(line)
        # The shell of this test has the line as its argument, as none has into which a person pastes it.
        assert key not in seen.replace(line, "") + computer.recorded("environments")
        assert key not in done.stdout + done.stderr
        assert computer.part.secret not in done.stdout + done.stderr + seen


async def test_the_variables_of_the_specification_work_too(tmp_path: Path) -> None:
    async with world(tmp_path) as computer:
        values = f"MACHINE_PART_ID={computer.part.id} MACHINE_API_KEY_ID={computer.running.key[0]}"
        values += f" MACHINE_API_KEY={computer.running.key[1]}"
        line = f"curl -fsSL http://{computer.running.address}/install.sh | env {values} sh"
        done = await computer.execute(line)
        assert done.returncode == 0, done.stderr
        assert computer.recorded("arguments").startswith("--install\n")
        assert computer.running.key[1] not in computer.recorded("processes").replace(line, "")
        assert computer.running.key[1] not in computer.recorded("environment")


async def test_existing_credentials_are_used(tmp_path: Path) -> None:
    async with world(tmp_path) as computer:
        script = f"http://{computer.running.address}/install.sh"
        line = f"cp -p {computer.part.file} /etc/machine.json; curl -fsSL {script} | sudo sh"
        done = await computer.execute(line)
        assert done.returncode == 0, done.stderr
        assert computer.recorded("arguments") == "--install\n"


async def test_the_user_data_for_cloud_init_installs(tmp_path: Path) -> None:
    """cloud-init writes a text of `runcmd` into a script with mode 0700, and executes it with /bin/sh as root."""
    async with world(tmp_path) as computer:
        printed = (await computer.terminal("install-line", "rover", "--cloud-init")).splitlines()
        assert printed[:2] == ["#cloud-config", "runcmd:"]
        assert "works only on this computer" in printed[-1]
        script = tmp_path / "runcmd"
        script.write_text(f"#!/bin/sh\n{json.loads(printed[2].removeprefix('  - '))}\n")
        script.chmod(0o700)
        # The first attempt finds no network. The recorder only imitates machine-agent, so the shell creates its folder.
        curl = f"""\
#!/bin/sh
echo >>{tmp_path}/attempts
[ $(wc -l <{tmp_path}/attempts) -gt 1 ] || {{ echo "curl: (6) Could not resolve host" >&2; exit 6; }}
exec /usr/bin/curl "$@"
"""
        sleep = f'#!/bin/sh\necho "$1" >>{tmp_path}/slept\n'
        installs = "mkdir -p /opt/machine/launch/machine-agent/run"
        line = f"/bin/sh {script}; status=$?; exit $status"
        sh = f'#!/bin/sh\n/bin/dash "$@" && [ -f {tmp_path}/arguments ] && {installs}\n'
        done = await computer.execute(line, tools={"curl": curl, "sleep": sleep, "sh": sh})
        assert done.returncode == 0, done.stderr
        assert computer.recorded("arguments").startswith("--install\n")
        assert computer.recorded("slept") == "30\n"
        key = key_in(json.loads(printed[2].removeprefix("  - ")))
        assert key not in computer.recorded("processes") + computer.recorded("environments") + done.stdout + done.stderr


async def test_without_a_release_it_says_what_to_do(tmp_path: Path) -> None:
    async with world(tmp_path, publish=False) as computer:
        done = await computer.execute(await computer.line())
        assert done.returncode == 1
        assert "HTTP status 404: this cloud has no release of machine-agent for linux/" in done.stderr
        assert "machine cloud releases upload" in done.stderr
        assert computer.recorded("arguments") == ""


async def test_a_wrong_key_or_another_tenants_gets_nothing(tmp_path: Path) -> None:
    async with world(tmp_path) as computer:
        line = await computer.line()
        key = key_in(line)
        done = await computer.execute(line.replace(key, "A" * 43))
        assert (done.returncode, "HTTP status 401" in done.stderr) == (1, True), done.stderr
        other = await computer.part.client.call(
            APP, "", "new_robot", name="x", location=computer.running.facts["location"]
        )
        (part, *_) = await computer.part.client.call(APP, "", "get_robot_parts", robot_id=other)
        done = await computer.execute(line.replace(computer.part.id, part["id"]))
        assert (done.returncode, "the line is for another machine" in done.stderr) == (1, True), done.stderr
        assert part["secret"] not in done.stdout + done.stderr
        assert computer.recorded("arguments") == ""
        assert not (tmp_path / "credentials").exists()


async def test_a_file_that_was_changed_on_the_way_is_not_executed(tmp_path: Path) -> None:
    changed = """\
#!/bin/sh
/usr/bin/curl "$@"; status=$?
for file in /opt/.machine-install.*/machine-agent; do [ -f "$file" ] && echo >>"$file"; done
exit $status
"""
    async with world(tmp_path) as computer:
        done = await computer.execute(await computer.line(), tools={"curl": changed})
        assert done.returncode == 1
        assert "another SHA-256 than the cloud named" in done.stderr
        assert computer.recorded("arguments") == ""


async def test_a_failed_installation_leaves_no_credentials(tmp_path: Path) -> None:
    async with world(tmp_path) as computer:
        line = await computer.line()
        done = await computer.execute(f"{line}; status=$?; ls -A /opt; exit $status", RESULT="1")
        assert done.returncode == 1
        assert "the installation failed; see above" in done.stderr
        assert ".machine-install" not in done.stdout


async def test_values_with_quotes_are_refused(tmp_path: Path) -> None:
    async with world(tmp_path) as computer:
        line = (await computer.line()).replace(computer.part.id, f"'{computer.part.id}\\\" url=http://[::1]/'")
        done = await computer.execute(line)
        assert done.returncode == 1
        assert "MACHINE_PART_ID has characters that it cannot have" in done.stderr


CHECKS = {
    "a Mac": ({"uname": "echo Darwin"}, "this is Darwin, and machine-agent needs Linux"),
    "another processor": (
        {"uname": '[ "$1" = -m ] && echo armv7l || echo Linux'},
        "there are no releases for the processor armv7l",
    ),
    "not root": ({"id": "echo 1000"}, "root is required"),
    "32 bits": ({"od": "echo ' 01'"}, "this system has 32 bits"),
    "no space": ({"df": 'echo x; echo "a 1 1 100000 1 /opt"'}, "has 97 MiB free, and the installation needs 700 MiB"),
    "a wrong clock": ({"date": "echo 0"}, "differs from the cloud's by -"),
}


@pytest.mark.parametrize("shell", SHELLS_WITHOUT_APPLETS)
async def test_each_check_of_the_computer_names_the_remedy(tmp_path: Path, shell: str) -> None:
    async with world(tmp_path, publish=False) as computer:
        line = await computer.line()
        for name, (tools, message) in CHECKS.items():
            scripts = {tool: f"#!/bin/dash\n{text}\n" for tool, text in tools.items()}
            done = await computer.execute(line, shell=shell, tools=scripts)
            assert (done.returncode, message in done.stderr) == (1, True), (name, done.stderr)
            assert name == "a Mac" or "remedy: " in done.stderr, name
        done = await computer.execute(f"rmdir /run/systemd/system; {line}", shell=shell)
        assert "systemd is not the init process" in done.stderr


def positions(length: int) -> Sequence[int]:
    return [*range(1, length - 6, 61), length - 6, length - 3, length - 2]


@pytest.mark.parametrize("shell", SHELLS_WITHOUT_APPLETS)
def test_a_script_that_ends_too_early_does_nothing(tmp_path: Path, shell: str) -> None:
    """Every program of the script is replaced by one that records its call."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("uname", "id", "curl", "mktemp", "mkdir", "od", "df", "date", "rm", "ma", "mai"):
        (programs / name).write_text(f'#!/bin/dash\necho {name} >>"{tmp_path}/calls"\n')
        (programs / name).chmod(0o755)
    text = SCRIPT.read_bytes().replace(b"@TIME@", b"0")
    command = [str(shutil.which(word)) if word == shell.split()[0] else word for word in shell.split()]
    for end in positions(len(text)):
        subprocess.run(command, input=text[:end], env={"PATH": str(programs)}, capture_output=True, check=False)
        called = (tmp_path / "calls").read_text() if (tmp_path / "calls").exists() else ""
        assert called.split() in ([], ["ma"], ["mai"]), end
        (tmp_path / "calls").unlink(missing_ok=True)
    subprocess.run(command, input=text, env={"PATH": str(programs)}, capture_output=True, check=False)
    assert (tmp_path / "calls").read_text().startswith("uname")


async def test_an_authority_of_the_cloud_is_trusted_by_the_hash_in_the_line(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud", "--tls") as running:
        secured = Secured(running, tmp_path)
        secured.trust()
        await secured.join()
        address = f"https://localhost:{secured.port}"
        terminal = Terminal(running, tmp_path / "home")
        login = ("login", address, "--key-id", running.key[0], "--ca", str(secured.authorities))
        await terminal(*login, MACHINE_CLOUD_KEY=running.key[1])
        (tmp_path / "etc").mkdir()
        async with secured.client() as client:
            part = Part(client, secured.credentials["id"], secured.credentials["secret"], tmp_path)
            computer = World(running, terminal, part, tmp_path)
            await computer.publish()
            line = await computer.line()
            sha256 = line.partition('echo "')[2].partition(" ")[0]
            done = await computer.execute(line.replace(sha256, "0" * 64))
            assert done.returncode == 1
            assert "computed checksum did NOT match" in done.stderr
            assert computer.recorded("arguments") == ""
            done = await computer.execute(line)
            assert done.returncode == 0, done.stderr
            credentials = json.loads(computer.recorded("credentials"))["cloud"]
            assert (credentials["app_address"], credentials["ca_file"]) == (address, "machine-cloud-ca.pem")
            assert "BEGIN CERTIFICATE" in computer.recorded("machine-cloud-ca.pem")
            direct = f"curl -fsS {address}/install.sh | sudo sh"
            done = await computer.execute(direct)
            assert "certificate" in done.stderr
