"""Training on a real Ray cluster: `python -m tests.e2e.training.ray_real PYTHON [SCENE ...]`.

PYTHON is an interpreter with ray[default], onnxruntime, numpy, pillow, msgspec and protobuf. A head and two nodes run
in network namespaces that this program makes, with token authentication; nothing leaves them, and all processes end
with it. Needs root. Scenes: train, node, link, cancel, queue, cloud; by default all. Prints what happened and when; the
exit status is 1 if something was wrong.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import trio

from rpc.api.client import ApiClient
from tests.e2e.cloud.process import CloudProcess, cloud
from tests.e2e.training.test_loop import LABELS, labelled, part_of, script_archive, with_sdk
from tests.processes import command_lines

TRAINING: Final = "viam.app.mltraining.v1.MLTrainingService"
PACKAGES: Final = "viam.app.packages.v1.PackageService"
INSIDE: Final = "RAY_REAL_INSIDE"
HEAD: Final = "10.9.0.1"
NODES: Final = {"b": "10.9.0.2", "c": "10.9.0.3"}
PORT: Final = 8911  # of the dashboard
FINAL: Final = ("COMPLETED", "FAILED", "CANCELED")
LIMIT: Final = 240.0  # seconds for one job
JOBS: Final = {"first": 30, "second": 15, "third": 5}  # of three organizations


class World:
    """A cluster and a cloud that trains on it."""

    def __init__(self, python: str, folder: Path) -> None:
        self.python = python
        self.folder = folder
        self.ray = str(Path(python).with_name("ray"))
        self.token = folder / "token"
        self.begin = time.monotonic()
        self.wrong: list[str] = []
        self.running: CloudProcess
        self.dataset = ""
        self.versions = 0
        self.together = 0  # programs of one job at once, at most

    def say(self, *words: object) -> None:
        print(f"{time.monotonic() - self.begin:7.2f}", *words, flush=True)

    def check(self, right: bool, what: str) -> None:
        if not right:
            self.wrong.append(what)
            self.say("WRONG:", what)

    # ---- the cluster

    def environment(self) -> dict[str, str]:
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        settings = {"HOME": str(home), "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(self.token)}
        return {"PATH": os.environ["PATH"], **settings}

    def start_ray(self, namespace: str, *options: str) -> None:
        command = [self.ray, "start", "--object-store-memory=80000000", "--disable-usage-stats", *options]
        inside = ["ip", "netns", "exec", namespace] if namespace else []
        done = subprocess.run([*inside, *command], env=self.environment(), capture_output=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def start_node(self, name: str) -> None:
        self.start_ray(name, f"--address={HEAD}:8910", f"--node-ip-address={NODES[name]}", "--num-cpus=1")

    def start_cluster(self) -> None:
        self.token.write_text(secrets.token_hex(32))
        run("mount -t tmpfs none /run && mkdir -p /run/netns && ip link set lo up")
        run(f"ip link add br0 type bridge && ip addr add {HEAD}/24 dev br0 && ip link set br0 up")
        for name, address in NODES.items():
            run(f"ip netns add {name} && ip link add v{name} type veth peer name e{name} netns {name}")
            run(f"ip link set v{name} master br0 && ip link set v{name} up")
            there = f"ip netns exec {name} ip"
            run(f"{there} link set lo up && {there} addr add {address}/24 dev e{name} && {there} link set e{name} up")
        where = [f"--node-ip-address={HEAD}", f"--dashboard-host={HEAD}", f"--dashboard-port={PORT}"]
        self.start_ray("", "--head", "--port=8910", *where, "--num-cpus=0", f"--temp-dir={self.folder / 'ray'}")
        for name in NODES:
            self.start_node(name)
        self.say("the cluster runs: a head and two nodes")

    def node_of_program(self) -> str:
        """Return the name of the node that runs a training program."""
        for name in NODES:
            pids = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=True).stdout
            if any(b"model.training" in command_of(int(pid)) for pid in pids.split()):
                return name
        return ""

    def kill_node(self, name: str) -> None:
        """Kill everything on a node, as a power cut does."""
        pids = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=True).stdout
        for pid in pids.split():
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                pass

    async def watch(self) -> None:
        """Count the programs of each job at once."""
        while True:
            counts = programs()
            self.together = max([self.together, *counts.values()])
            await trio.sleep(0.05)

    # ---- the cloud

    @asynccontextmanager
    async def cloud(self) -> AsyncIterator[None]:
        facts = self.running.facts if hasattr(self, "running") else {}
        options = (
            f"--training=ray://{HEAD}:{PORT}",
            f"--ray-token={self.token}",
            f"--ray-python={self.python}",
            f"--training-folder={self.folder / 'shared'}",
            "--training-jobs=2",
            "--ray-scripts",
        )
        async with cloud(self.folder / "cloud", *options) as running:
            running.facts = running.facts if "key" in running.facts else facts
            self.running = running
            yield

    async def prepare(self) -> None:
        part = await part_of(self.running)
        organization = self.running.facts["organization"]
        self.dataset = await with_sdk(self.running, lambda sdk: labelled(sdk, organization, part["id"], 12))
        async with self.running.client() as client:
            await self.upload(client, organization)

    async def upload(self, client: ApiClient, organization: str) -> None:
        """Upload the script."""

        async def pieces() -> AsyncIterator[bytes]:
            yield script_archive()

        values = {"organization_id": organization, "name": "script", "version": "1", "type": "ML_TRAINING"}
        await client.call(PACKAGES, "", "create_package", **values, pieces=pieces())

    async def organization(self, name: str) -> CloudProcess:
        """Create an organization; return the cloud with the key of its owner."""
        command = [sys.executable, "-m", "cloud.server.cli", "--data", str(self.folder / "cloud" / "data")]
        done = await trio.run_process([*command, "organization", name], capture_stdout=True)
        return CloudProcess(self.running.process, self.running.address, done.stdout.decode())

    async def submit(
        self, client: ApiClient, do: str, path: str = "", organization: str = "", dataset: str = ""
    ) -> str:
        """Submit a job of the script."""
        self.versions += 1
        owner = organization or self.running.facts["organization"]
        subject = await client.call(
            TRAINING,
            "",
            "submit_custom_training_job",
            organization_id=owner,
            dataset_id=dataset or self.dataset,
            registry_item_id=f"{owner}:script",
            registry_item_version="1",
            model_name=do,
            model_version=str(self.versions),
            arguments={"do": do, **({"path": path} if path else {})},
        )
        return str(subject)

    async def until(self, client: ApiClient, job: str, text: str = "", state: tuple[str, ...] = FINAL) -> Any:
        """Wait for a line of the log, or for a state; return the job."""
        with trio.fail_after(LIMIT):
            while True:
                record = await client.call(TRAINING, "", "get_training_job", id=job)
                lines = await self.log(client, job) if text else []
                if any(text in line for line in lines) if text else record["status"] in state:
                    return record
                assert not text or record["status"] not in FINAL, (record, lines)
                await trio.sleep(0.2)

    async def log(self, client: ApiClient, job: str) -> list[str]:
        lines: list[str] = []
        token = ""
        while not lines or token:
            page = await client.call(TRAINING, "", "get_training_job_logs", id=job, page_token=token)
            lines += [entry["message"] for entry in page["logs"]]
            token = page["next_page_token"]
        return lines


# ---- scenes


async def train(world: World) -> None:
    """The trainer of the product, with the shipped weights."""
    async with world.running.client() as client:
        begin = time.monotonic()
        job = await client.call(
            TRAINING, "", "submit_training_job", organization_id=world.running.facts["organization"],
            dataset_id=world.dataset, model_name="parts", model_version="1", model_type=1, tags=LABELS,
        )  # fmt: skip
        record = await world.until(client, job)
        world.say(f"the trainer: {record['status']} after {time.monotonic() - begin:.1f} s")
        world.check(record["status"] == "COMPLETED", f"the trainer: {record} {await world.log(client, job)}")


async def node(world: World) -> None:
    """The node is killed; the job continues on the other one."""
    await lost(world, world.kill_node, 200)


async def link(world: World) -> None:
    """The link of the node is cut, but not that to the shared folder; its program must end before the next attempt."""
    await lost(world, lambda name: run(f"ip link set v{name} down"), 2500)


async def lost(world: World, lose: Callable[[str], None], steps: int) -> None:
    async with world.running.client() as client:
        job = await world.submit(client, "count", str(steps))
        await world.until(client, job, "counting 40")
        name = world.node_of_program()
        begin = time.monotonic()
        lose(name)
        world.say(f"lost the node {name}")
        await world.until(client, job, "has lost its node")
        world.say(f"seen after {time.monotonic() - begin:.0f} s")
        record = await world.until(client, job)
        world.say(f"{record['status']} after {time.monotonic() - begin:.0f} s")
        lines = await world.log(client, job)
        numbers = [int(line.split()[1]) for line in lines if line.startswith("counting")]
        world.check(record["status"] == "COMPLETED", f"{record['status']}: {lines[-3:]}")
        world.check(numbers.count(0) == 1 and numbers[-1] == steps - 1, "it did not continue from a checkpoint")
    world.kill_node(name)
    run(f"ip link set v{name} up")
    world.start_node(name)


async def cancel(world: World) -> None:
    """A program that ignores SIGTERM ends within the grace."""
    async with world.running.client() as client:
        job = await world.submit(client, "hang")
        await world.until(client, job, "hanging")
        begin = time.monotonic()
        await client.call(TRAINING, "", "cancel_training_job", id=job)
        record = await world.until(client, job)
        seconds = time.monotonic() - begin
        world.say(f"{record['status']} {seconds:.1f} s after the request")
        world.check(record["status"] == "CANCELED" and seconds < 20, f"canceled after {seconds:.1f} s")
        world.check(not world.node_of_program(), "a canceled program still runs")


async def killed(world: World) -> None:
    """The cloud is killed; the next one ends the earlier attempt, and continues."""
    async with world.running.client() as client:
        job = await world.submit(client, "count", "300")
        await world.until(client, job, "counting 40")
    world.running.process.kill()
    await world.running.process.wait()
    begin = time.monotonic()
    async with world.cloud(), world.running.client() as client:
        record = await world.until(client, job)
        world.say(f"{record['status']} {time.monotonic() - begin:.0f} s after the kill")
        lines = await world.log(client, job)
        world.check(record["status"] == "COMPLETED", f"{record['status']}: {lines[-3:]}")
        world.check(any("ending the earlier attempt" in line for line in lines), "no earlier attempt")


async def queue(world: World) -> None:
    """50 jobs of three organizations, two at once."""
    owners = {name: await world.organization(name) for name in JOBS}
    begin, order = time.monotonic(), list[tuple[Any, str]]()
    submitted: dict[str, list[str]] = {}
    for name, count in JOBS.items():
        owner = owners[name]
        organization, part = owner.facts["organization"], await part_of(owner)
        dataset = await with_sdk(owner, partial(labelled, organization=organization, part=part["id"], count=1))
        async with owner.client() as client:
            await world.upload(client, organization)
            submitted[name] = [
                await world.submit(client, "train", organization=organization, dataset=dataset) for _ in range(count)
            ]
    for name, jobs in submitted.items():
        async with owners[name].client() as client:
            for job in jobs:
                record = await world.until(client, job)
                world.check(record["status"] == "COMPLETED", f"a job of {name}: {record}")
                order.append((record["training_started"], name))
    names = [name for _, name in sorted(order)]
    world.say(f"50 jobs: {time.monotonic() - begin:.0f} s")
    last = {name: len(names) - names[::-1].index(name) for name in JOBS}
    world.say(f"place of the last start of each organization: {last}")
    world.check(last["third"] <= 20 and last["second"] <= 40, f"not fair: {names}")


SCENES: Final[dict[str, Callable[[World], Awaitable[None]]]] = {
    "train": train,
    "node": node,
    "link": link,
    "cancel": cancel,
    "queue": queue,
    "cloud": killed,
}


def run(command: str) -> None:
    subprocess.run(command, shell=True, check=True)


def programs() -> dict[bytes, int]:
    """Return how many training programs of each job run."""
    counts: dict[bytes, int] = {}
    for _, command in command_lines():
        if b"model.training" in command and b"machine-training/" in command:
            job = command.partition(b"machine-training/")[2].partition(b"/")[0]
            counts[job] = counts.get(job, 0) + 1
    return counts


def command_of(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


async def inside(python: str, scenes: list[str], folder: Path) -> int:
    world = World(python, folder)
    world.start_cluster()
    async with world.cloud():
        await world.prepare()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.watch)
            for name in scenes or SCENES:
                world.say(f"scene {name}: {SCENES[name].__doc__}")
                await SCENES[name](world)
            nursery.cancel_scope.cancel()
    world.check(world.together == 1, f"{world.together} programs of one job at once")
    print("nothing wrong" if not world.wrong else "\n".join(world.wrong))
    return bool(world.wrong)


def main() -> None:
    """Run the scenes in namespaces of their own, whose processes end with this one."""
    if INSIDE not in os.environ:
        unshare = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
        words = [*unshare, sys.executable, "-m", "tests.e2e.training.ray_real", *sys.argv[1:]]
        sys.exit(subprocess.run(words, env={**os.environ, INSIDE: "1"}, check=False).returncode)
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    with TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o711)
        sys.exit(trio.run(inside, sys.argv[1], sys.argv[2:], Path(folder)))


if __name__ == "__main__":
    main()
