"""Kill clouds and jobs at random: `python -m tests.e2e.training.kills [--kills 200] [--seed N] [--replicas 2]`.

Jobs of a script that counts run in a cloud. At seeded moments, SIGKILL is sent to the cloud, which is then started
again with the same data, to the process around a program, or to a program. At the end, every job must have ended
exactly once and for a reason that happened to it, no two programs of the same job may have run at once, each
completed job must have its model, which is downloaded, and no other job may have a model.

With `--replicas`, so many clouds share one PostgreSQL and one data folder. A killed one starts again at once, or only
before the next kill. After the last kill, one more is killed for good while it runs jobs, and the others must complete
them when its leases have ended.

Prints each kill, and a table. Exit status 1 if something was wrong. It takes about 2 s for each kill.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import signal
import sys
import tarfile
import time
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import trio

from rpc.api.client import ApiClient
from schema.errors import MachineError
from tests.e2e.cloud.process import CloudProcess, cloud
from tests.e2e.training.test_loop import labelled, part_of, script_archive, with_sdk
from tests.postgresql import QUICK, cluster
from tests.processes import command_lines

TRAINING: Final = "viam.app.mltraining.v1.MLTrainingService"
PACKAGES: Final = "viam.app.packages.v1.PackageService"
VICTIMS: Final = {"cloud": 5, "process around a program": 2, "program": 2}
"""What is killed, and how often in relation to the others."""
SLOTS: Final = 3
SOON: Final = 0.7  # of the killed replicas start again at once
STEPS: Final = (1, 60)  # numbers that a job counts, each of which takes 0.05 s
WAIT: Final = 2.5  # seconds before a kill, at most
PATIENCE: Final = 180.0  # seconds until all jobs have ended, after the last kill; the lease of a job is 90 s
ENDED: Final = ("COMPLETED", "FAILED", "CANCELED")
ATTEMPTS: Final = 3  # starts of a job that a killed cloud ended, until it fails
LOST: Final = "stopped without notice"
REASONS: Final = {
    "process around a program": "the process around the program ended by signal 9",
    "program": "the program was killed",
    "cloud": f"the cloud that ran it {LOST}, {ATTEMPTS} times",
}
"""Reason of a job that failed because of a kill."""

Say = Callable[[str], None]


@dataclass
class Kills:
    """A cloud whose processes are killed. `wrong` says what should not have happened."""

    folder: Path
    seed: int
    say: Say
    database: str = ""  # of several replicas
    replicas: int = 1
    for_good: bool = False  # one replica is killed for good at the end
    killed: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._facts: dict[str, str] = {}
        self._running: dict[int, CloudProcess] = {}
        self._dataset = ""
        self._jobs: dict[str, int] = {}  # what each counts to
        self._victims: dict[str, set[str]] = {}  # what was killed of each job

    async def run(self, kills: int) -> None:
        """Kill so often, and check every job at the end."""
        async with AsyncExitStack() as stack:
            await self._start(stack)
            await self._prepare()
            for number in range(1, kills + 1):
                if await self._kill(number) == "cloud" and (not self._running or self._random.random() < SOON):
                    await self._start(stack)
                if number < kills:
                    continue
                await self._start(stack)
                if self.for_good:
                    await self._kill(number + 1, "cloud")
            await self._check()

    async def _start(self, stack: AsyncExitStack) -> None:
        """Start the replicas that do not run, one after the other."""
        options = [f"--training-python={sys.executable}", f"--training-jobs={SLOTS}"]
        options += [f"--database={self.database}"] if self.database else []
        for number in range(self.replicas):
            if number not in self._running:
                running = await stack.enter_async_context(cloud(self.folder, *options))
                self._facts = running.facts if "key" in running.facts else self._facts
                running.facts = self._facts
                self._running[number] = running

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[ApiClient]:
        """Provide a client of any replica."""
        async with self._running[self._random.choice(sorted(self._running))].client() as client:
            yield client

    async def _prepare(self) -> None:
        async def pieces() -> AsyncIterator[bytes]:
            yield script_archive()

        (running,) = list(self._running.values())[:1]
        organization, part = self._facts["organization"], await part_of(running)
        self._dataset = await with_sdk(running, lambda sdk: labelled(sdk, organization, part["id"], 1))
        values = {"organization_id": organization, "name": "script", "version": "1", "type": "ML_TRAINING"}
        async with self._client() as client:
            await client.call(PACKAGES, "", "create_package", **values, pieces=pieces())

    async def _submit(self, client: ApiClient) -> None:
        number, steps = len(self._jobs) + 1, self._random.randint(*STEPS)
        subject = await client.call(
            TRAINING,
            "",
            "submit_custom_training_job",
            organization_id=self._facts["organization"],
            dataset_id=self._dataset,
            registry_item_id=f"{self._facts['organization']}:script",
            registry_item_version="1",
            model_name="numbers",
            model_version=str(number),
            arguments={"do": "count", "path": str(steps)},
        )
        self._jobs[subject] = steps

    async def _all(self, client: ApiClient) -> dict[str, Any]:
        listed = await client.call(
            TRAINING, "", "list_training_jobs", organization_id=self._facts["organization"], status=0
        )
        return {job["id"]: job for job in listed}

    async def _kill(self, number: int, victim: str = "") -> str:
        """Submit jobs until all slots have one and one waits, wait, and kill; return what was killed."""
        async with self._client() as client:
            unfinished = [job for job in (await self._all(client)).values() if job["status"] not in ENDED]
            for _ in range(SLOTS * len(self._running) + 1 - len(unfinished)):
                await self._submit(client)
        await trio.sleep(self._random.random() * WAIT)  # the moment is what is tried
        victim = victim or self._random.choices(list(VICTIMS), list(VICTIMS.values()))[0]
        programs = {job: sorted(processes) for job, processes in self._processes().items() if len(processes) >= 3}
        if victim == "cloud" or not programs or not self._kill_process(programs, victim):
            victim = "cloud"
            for subject in self._jobs:
                self._victims.setdefault(subject, set()).add(victim)
            running = self._running.pop(self._random.choice(sorted(self._running)))
            running.process.kill()
            await running.process.wait()
        self.killed[victim] += 1
        self.say(f"{number:4} killed the {victim} with {len(programs)} programs running")
        return victim

    def _kill_process(self, programs: Mapping[str, Sequence[int]], victim: str) -> bool:
        """Kill a process of one of the jobs; return False if it has ended in the meantime."""
        subject = self._random.choice(sorted(programs))
        around, *_, program = programs[subject]
        try:
            os.kill(program if victim == "program" else around, signal.SIGKILL)
        except ProcessLookupError:
            return False
        self._victims.setdefault(subject, set()).add(victim)
        return True

    def _processes(self) -> dict[str, list[int]]:
        """Return the processes of each job: the one around the program, its child, and the program."""
        processes: dict[str, list[int]] = {}
        for process, command in sorted(command_lines()):
            for subject in self._jobs:
                if f"{self.folder}/data/training/{subject}/".encode() in command:
                    processes.setdefault(subject, []).append(process)
        return processes

    async def _check(self) -> None:
        async with self._client() as client:
            await self._check_with(client)

    async def _check_with(self, client: ApiClient) -> None:
        end = time.monotonic() + PATIENCE
        listed = await self._all(client)
        while any(job["status"] not in ENDED for job in listed.values()):
            if time.monotonic() > end:
                self.wrong.append("jobs did not end")
                break
            await trio.sleep(0.2)  # the published calls have no events
            listed = await self._all(client)
        if set(listed) != set(self._jobs):
            self.wrong.append(f"jobs vanished or appeared: {set(listed) ^ set(self._jobs)}")
        for subject, job in listed.items():
            self.states[job["status"]] += 1
            for problem in [problem async for problem in self._problems(client, subject, job)]:
                self.wrong.append(f"job {subject}, {job['status']}: {problem}")
        if self._processes():
            self.wrong.append(f"processes are left: {self._processes()}")

    async def _problems(self, client: ApiClient, subject: str, job: Any) -> AsyncIterator[str]:
        log, token = [], ""
        while not log or token:
            page = await client.call(TRAINING, "", "get_training_job_logs", id=subject, page_token=token)
            log += [entry["message"] for entry in page["logs"]]
            token = page["next_page_token"]
        lost = sum(LOST in line and "continues" in line for line in log)
        ends = sum(line.startswith(tuple(f"the job is {state.lower()}" for state in ENDED)) for line in log)
        if ends != 1:
            yield f"{ends} ends in its log"
        if any("TWICE" in line for line in log):
            yield "two programs ran at once"
        model = await self._model(client, job["model_version"])
        if job["status"] == "COMPLETED":
            if model != str(self._jobs[subject]):
                yield f"its model is {model!r}, not {self._jobs[subject]}"
            return
        if model is not None:
            yield "it has a model"
        reason = (job["error_status"] or {}).get("message", "")
        happened = [victim for victim in self._victims.get(subject, ()) if reason.startswith(REASONS[victim])]
        self.reasons[happened[0] if happened else reason] += 1
        if not happened:
            yield f"nothing that happened to it explains {reason!r}; the end of its log: {log[-4:]}"
        if "cloud" in happened and lost != ATTEMPTS - 1:
            yield f"it failed after {lost + 1} lost clouds"

    async def _model(self, client: ApiClient, version: str) -> str | None:
        """Download a model; None if there is none."""
        name = f"{self._facts['organization']}/numbers"
        try:
            answer = await client.call(PACKAGES, "", "get_package", id=name, version=version, type="ML_MODEL")
        except MachineError:
            return None

        def fetch() -> bytes:
            with urllib.request.urlopen(answer["url"], timeout=PATIENCE) as content:
                data: bytes = content.read()
                return data

        with tarfile.open(fileobj=io.BytesIO(await trio.to_thread.run_sync(fetch))) as tar:
            file = tar.extractfile("model.txt")
            assert file is not None
            return file.read().decode()

    def table(self) -> list[str]:
        """Return what happened, as lines."""
        return [
            f"seed {self.seed}",
            *(f"killed the {victim}: {count}" for victim, count in self.killed.items()),
            *(f"jobs {state}: {count}" for state, count in self.states.items()),
            *(f"failed because of a killed {reason}: {count}" for reason, count in self.reasons.items()),
        ]


def main() -> None:
    """Kill as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--replicas", type=int, default=1, help="clouds with one PostgreSQL and one data folder")
    settings = parser.parse_args()
    began = time.monotonic()
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory())
        os.chmod(folder, 0o711)
        several = settings.replicas > 1
        database = stack.enter_context(cluster(*QUICK)).url() if several else ""
        say = partial(print, flush=True)
        kills = Kills(Path(folder), settings.seed, say, database, settings.replicas, for_good=several)
        trio.run(kills.run, settings.kills)
    print(*kills.table(), f"{time.monotonic() - began:.0f} s", *kills.wrong, sep="\n")
    sys.exit(bool(kills.wrong))


if __name__ == "__main__":
    main()
