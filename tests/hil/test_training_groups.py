"""Training jobs in control groups: systemd delegates a group to a service, and the kernel limits each job in it."""

from __future__ import annotations

import json
import re
import uuid
from typing import Any

import pytest
import trio

from tests.hil.rig.guest import Guest

pytestmark = pytest.mark.systemd
LIMIT = 120.0
MIB = 1024**2


def service(unit: str, *command: str, user: str = "root") -> list[str]:
    options = [f"--unit={unit}", f"--uid={user}", "--property=Delegate=yes", "--property=TasksMax=500"]
    return ["systemd-run", "--quiet", "--wait", "--pipe", *options, *command]


async def job(guest: Guest, do: str, user: str = "root", **bounds: int) -> tuple[str, list[str], list[str]]:
    """Run a script in a service; return the reason, the log, and the groups that are left below that of the service."""
    name = f"training{uuid.uuid4().hex[:8]}"
    limits = [f"{key}={value}" for key, value in bounds.items()]
    command = ["/usr/bin/python3", "-m", "tests.hil.guest.training_job", f"/var/tmp/{name}", do, *limits]
    done = await guest.run(service(name, *command, user=user), limit=LIMIT)
    lines: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    return lines[-1]["reason"], [line["log"] for line in lines[:-1]], lines[-1]["groups"]


@pytest.mark.parametrize("user", ["root", "daemon"])
async def test_a_script_that_ends_says_what_it_has_used(guest: Guest, user: str) -> None:
    reason, log, groups = await job(guest, "train", user)
    assert reason == ""
    used = re.fullmatch(r"used (\d+\.\d) s of processor time, and at most (\d+) MiB of memory", log[-1])
    assert used is not None, log
    assert float(used[1]) > 0
    assert groups == ["machine-cloud"]  # the group of the job was removed


async def test_processes_together_exceed_the_memory(guest: Guest) -> None:
    """Each process stays below the limit; there is no swap to escape to."""
    reason, log, groups = await job(guest, "together", memory=256 * MIB)
    assert reason == "the program needed more memory than its limit of 256 MiB"
    assert int(log[-1].split()[-4]) <= 256, log
    assert groups == ["machine-cloud"]


async def test_shared_memory_counts(guest: Guest) -> None:
    reason, _, _ = await job(guest, "shared", memory=100 * MIB)
    assert reason == "the program needed more memory than its limit of 100 MiB"


async def test_too_many_processes(guest: Guest) -> None:
    reason, log, groups = await job(guest, "fork", processes=20)
    assert reason == "the program needed more than 20 processes and threads"
    assert any("children, then: Resource temporarily unavailable" in line for line in log), log
    assert groups == ["machine-cloud"]


async def test_processor_time_of_several_processes(guest: Guest) -> None:
    """Each of four processes stays below the limit."""
    reason, log, _ = await job(guest, "burn", cpu=4)
    assert reason == "the program used up its processor time of 4 s"
    assert 4 < float(log[-1].split()[1]) < 12, log  # with a limit for each process, it would be 16 s


async def test_a_killed_engine_leaves_nothing(guest: Guest) -> None:
    """The engine is killed while a script ignores signals; the next engine in the same group removes what is left."""
    name = f"training{uuid.uuid4().hex[:8]}"
    group = f"/sys/fs/cgroup/system.slice/{name}.service"
    module = "/usr/bin/python3 -m tests.hil.guest.training_job"
    script = f"""
mkdir {group}/machine-cloud && echo $$ > {group}/machine-cloud/cgroup.procs
{module} /var/tmp/{name}-a hang
exec {module} /var/tmp/{name}-b train
"""
    await guest.write(f"/var/tmp/{name}.sh", script)
    running = await guest.start(service(name, "/bin/sh", f"/var/tmp/{name}.sh"))
    with trio.fail_after(LIMIT):
        while "hanging" not in running.stdout:
            await running.wait_change()
        assert "training-job" in (await guest.run(["ls", group])).stdout
        engine = (await guest.run(f"pgrep -f 'tests.hil.guest.training_job /var/tmp/{name}-a'")).stdout.split()[0]
        await guest.run(["kill", "-9", engine])
        while '"reason"' not in running.stdout:
            await running.wait_change()
    last = json.loads(running.stdout.splitlines()[-1])
    assert last == {"reason": "", "groups": ["machine-cloud"]}


async def test_a_group_with_other_processes_is_not_used(guest: Guest) -> None:
    """As in the session of a person, whose processes must not be moved."""
    code = "from training.engine.groups import open_groups; open_groups()"
    await guest.write("/var/tmp/shared.sh", f"(sleep 60 &)\nexec /usr/bin/python3 -c '{code}'\n")
    done = await guest.run(service("shared-group", "/bin/sh", "/var/tmp/shared.sh"), check=False, limit=LIMIT)
    assert "is not only that of this program: 1 others" in done.output
