"""Measure the pages, bulk jobs and a rollout of a running cloud while thousands of machines are connected and poll.

`python -m bench cloud_large [--machines 5000] [--changed 200] [--database sqlite] [--only WORD ...]`

The cloud, the machines and this program are three processes on loopback. Every machine holds its push channel, polls
its configuration every `--every` seconds and fires an alert. Of each request: times of the cloud's and the database's
processor, less what they use otherwise; the longest step of a task of the event loop in processor time; the
longest time on the clock that a task waited for its turn, which other programs lengthen; and p99 of the machines' polls
meanwhile. Budgets: 100 ms for a page, 20 ms for a step.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import trio

from bench.cloud_large_fill import WARM, Filled, fill
from bench.cloud_process import Cost, Database, Load, Running, cloud, databases, free_port, load
from bench.cloud_steps import Steps
from rpc.api import AGENTS, ALERTS, FLEET, HEALTH, ROLLOUTS
from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey

APP: Final = "viam.app.v1.AppService"
IDLE: Final = 20.0  # seconds
REPEATED: Final = 5  # requests of a page
PAGE: Final = 0.100
STEP: Final = 0.020
SLOWER: Final = 0.040
"""Budgets in seconds: processor time of a page, of a step, and p99 of polls above that of an idle cloud."""


@dataclass(frozen=True)
class Idle:
    """The cloud with its machines, without requests: share of a core, and p99 of polls."""

    busy: float
    p99: float


class Bench:
    """A running cloud, its machines, and a person."""

    def __init__(self, running: Running, cost: Cost, steps: Steps, machines: Load, app: ApiClient, token: str) -> None:
        self.running, self.cost, self.steps, self.machines, self.app = running, cost, steps, machines, app
        self.token = token
        self.idle = Idle(0.0, 0.0)
        self.over: list[str] = []

    async def call(self, service: str, method: str, **arguments: Any) -> Any:
        """Call the cloud as the owner."""
        return await self.app.call(service, "", method, **arguments)

    async def get(self, path: str) -> int:
        """Request a page; return its size. RuntimeError unless it is answered with 200."""
        host, _, port = self.running.address.rpartition(":")
        stream = await trio.open_tcp_stream(host, int(port))
        async with stream:
            head = f"GET {path} HTTP/1.1\r\nHost: {self.running.address}\r\nAccept: text/html\r\nConnection: close\r\n"
            await stream.send_all(f"{head}Authorization: Bearer {self.token}\r\n\r\n".encode())
            first, size = b"", 0
            while data := await stream.receive_some(1 << 18):
                first = first or data
                size += len(data)
        if b" 200 " not in first[:20]:
            raise RuntimeError(f"{path}: {first[:300]!r}")
        return size

    async def measured(
        self, name: str, work: Callable[[], Awaitable[Any]], *, repeat: int = 1, each: int = 1, budget: float = 0.0
    ) -> Any:
        """Do work `repeat` times and print its line; `each` is the number of machines that it concerns."""
        result: Any = None
        await self.machines("taken")
        self.steps.take()
        before, begin = self.cost.seconds(), time.perf_counter()
        for _ in range(repeat):
            result = await work()
        wall = time.perf_counter() - begin
        spent = max(0.0, self.cost.seconds() - before - self.idle.busy * wall) / repeat
        step, turn, task = self.steps.take()
        polls = await self.machines("taken")
        p99 = polls.get("p99", 0.0)
        marks = [
            *([f"page {spent / budget:.1f}x"] if budget and spent > budget else []),
            *([f"step in {task.rpartition('.')[2]}"] if step > STEP else []),
            *(["polls"] if p99 > self.idle.p99 + SLOWER else []),
        ]
        more = f", {1e3 * spent / each:.1f} ms a machine" if each > 1 else ""
        size = f", {result / 1e3:.0f} KB" if budget and isinstance(result, int) else ""
        text = f"{1e3 * wall / repeat:8.0f} {1e3 * spent:9.1f} {1e3 * step:7.1f} {1e3 * turn:7.1f} {1e3 * p99:7.1f}"
        print(f"{name[:58]:58} {text}  {', '.join(marks)}{more}{size}", flush=True)
        self.over += [f"{name}: {', '.join(marks)}"] if marks else []
        return result

    async def rest(self, seconds: float) -> None:
        """Measure the cloud without requests."""
        await self.machines("taken")
        self.steps.take()
        before = self.cost.seconds()
        await trio.sleep(seconds)
        busy, polls = (self.cost.seconds() - before) / seconds, await self.machines("taken")
        self.idle = Idle(busy, polls["p99"])
        step, turn, task = self.steps.take()
        print(
            f"idle: {100 * busy:.0f} % of a core, {self.cost.memory:.0f} MiB; {polls['calls'] / seconds:.0f} polls/s, "
            f"p50 {1e3 * polls['p50']:.1f} ms, p99 {1e3 * polls['p99']:.1f} ms; longest step {1e3 * step:.1f} ms in "
            f"{task}, turn {1e3 * turn:.1f} ms",
            flush=True,
        )


@asynccontextmanager
async def prepared(folder: Path, database: Database, count: int, every: float) -> AsyncIterator[tuple[Bench, Filled]]:
    """Run a cloud with its machines."""
    begin = time.perf_counter()
    await trio.Path(folder / "data").mkdir()
    filled = await fill(folder / "data", database, count)
    print(f"{database.name}: {count} machines stored in {time.perf_counter() - begin:.0f} s", flush=True)
    steps = Steps(folder / "steps")
    os.environ["MACHINE_BENCH_STEPS"] = str(folder / "steps")
    port = free_port()
    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(cloud(folder, database, port, program="bench.cloud_steps"))
        machines = await stack.enter_async_context(load(port))
        cost = Cost(running, database)
        begin = time.perf_counter()
        joined = await machines("connect", parts=filled.parts)
        print(f"connected in {joined['seconds']:.0f} s, {cost.seconds():.0f} s of processor time", flush=True)
        await machines("polls", every=every)
        print(f"all poll after {time.perf_counter() - begin:.0f} s", flush=True)
        key = ApiKey(filled.owner.id, filled.owner.key)
        channel = await stack.enter_async_context(Channel(f"http://{running.address}", credentials=key))
        token = dict(await channel.credential_headers())["authorization"].removeprefix("Bearer ")
        yield Bench(running, cost, steps, machines, ApiClient(channel), token), filled


def pages(filled: Filled, alert: str) -> Sequence[str]:
    """Return the paths of the pages."""
    machine = f"/machines/{filled.parts[10][0]}"
    fragment = f"/fragments/{filled.fragment}"
    return (
        *("/", "/?sort=problems", "/?q=sim-1234", "/?tag=red", "/?state=degraded", f"/?fragment={filled.fragment}"),
        "/?columns=state,location,version,agent,revision,fragments,seen,platform,problems,tags,processor,disk",
        *("/fleet", "/locations", "/alerts", "/alerts/count", "/alerts/rules", f"/alerts/{alert}"),
        *("/rollouts", "/rollouts/new", "/rollouts/versions", "/rollouts/versions?q=sim-1234", "/releases"),
        *("/logs", "/logs?text=drive-7", "/logs?level=error", "/fragments", fragment, f"{fragment}/history"),
        *(
            "/audit",
            "/audit?q=sim-1234",
            "/search?q=sim-12",
            "/keys",
            "/modules",
            "/triggers",
            "/datasets",
            "/training",
        ),
        *("/data", "/data?view=readings", "/data?view=readings&component=freezer", "/sql", "/metrics"),
        *(machine, f"{machine}/config", f"{machine}/history", f"{machine}/logs", f"{machine}/statistics"),
        *(f"{machine}/control", f"{machine}/connect", f"{machine}/triggers"),
    )


CALLS: Final = {
    "machine cloud machines: ListMachineSummaries": (APP, "list_machine_summaries"),
    "machine cloud machines: ListHealth": (HEALTH, "list_health"),
    "machine cloud machines: ListAgents": (AGENTS, "list_agents"),
    "ListAlerts": (ALERTS, "list_alerts"),
}


async def read(bench: Bench, filled: Filled, chosen: Callable[[str], bool]) -> None:
    """Open every page, and make the calls that read the fleet."""
    alerts = await bench.call(ALERTS, "list_alerts")
    for path in pages(filled, alerts[0]["id"] if alerts else ""):
        if chosen(path):
            name = path.replace(filled.parts[10][0], "PART").replace(filled.fragment, "FRAGMENT")
            await bench.get(path)  # what is loaded once
            await bench.measured(f"GET {name}", partial(bench.get, path), repeat=REPEATED, budget=PAGE)
    for name, (service, method) in CALLS.items():
        if chosen(name):
            more = {"organization_id": filled.owner.organization} if service == APP else {}
            await bench.measured(name, partial(bench.call, service, method, **more), repeat=2)


def jobs(filled: Filled) -> dict[str, dict[str, Any]]:
    """Return the work of each bulk job."""
    path = "components.sensor-3.attributes.limit"
    return {
        "set a value": {"kind": "set_value", "path": path, "value_json": "7"},
        "remove the fragment": {"kind": "remove_fragment", "fragment_id": filled.fragment},
        "apply the fragment": {"kind": "add_fragment", "fragment_id": filled.fragment},
        "tag": {"kind": "add_tags", "tags": ["blue"]},
        "pin a version": {"kind": "pin_version", "program": "machine-server", "version": "1.2.0"},
        "restart": {"kind": "restart"},
        "move": {"kind": "move", "location_id": filled.locations[-1]},
    }


async def change(bench: Bench, filled: Filled, count: int, chosen: Callable[[str], bool]) -> None:
    """Run each bulk job on the first machines, and preview it for all."""
    await bench.machines("report", problems={})
    for name, work in jobs(filled).items():
        if not chosen(f"job {name}"):
            continue
        preview = partial(bench.call, FLEET, "preview_fleet_job", every=True, work=work)
        await bench.measured(f"job: {name}, preview for all", preview, budget=PAGE)
        start = partial(bench.call, FLEET, "start_fleet_job", machine_ids=filled.machines[:count], work=work)
        job = await bench.measured(f"job: {name}, start with {count}", start)
        await bench.measured(f"job: {name}, until done", partial(_done, bench, job), each=count)
        await bench.measured(f"GET /fleet/JOB ({name})", partial(bench.get, f"/fleet/{job}"), budget=PAGE)


async def _done(bench: Bench, job: str) -> None:
    while True:
        state = (await bench.call(FLEET, "get_fleet_job", id=job, limit=1))["job"]
        if state["state"] != "running":
            if state["failed"]:
                raise RuntimeError(f"the job failed for {state['failed']} machines")
            return
        await bench.call(FLEET, "wait_for_fleet_job", id=job, finished=state["total"] - 1)


async def roll_out(bench: Bench, filled: Filled, broken: int) -> None:
    """Roll a fragment out to all machines; then another revision, of which some break."""
    owner = filled.owner.organization
    for name, level, problems in (("all machines", "warn", 0), (f"{broken} machines break", "error", broken)):
        await bench.machines("report", problems={part: 3 for part, _ in filled.parts[:problems]})
        revision = await bench.call(
            ROLLOUTS,
            "update_fragment_for_rollout",
            fragment_id=filled.fragment,
            fragment_config_json=f'{{"log": [{{"pattern": "a", "level": "{level}"}}]}}',
        )
        plan = {"kind": "fragment", "subject": filled.fragment, "revision": revision, "soak_seconds": 60}
        plan |= {"stages": [{"percent": 5}, {"percent": 100}], "stop_after": broken // 2}
        preview = partial(bench.call, ROLLOUTS, "preview_staged_rollout", organization_id=owner, plan=plan)
        await bench.measured(f"rollout, {name}: preview", preview)
        start = partial(bench.call, ROLLOUTS, "start_staged_rollout", organization_id=owner, plan=plan)
        rollout = await bench.measured(f"rollout, {name}: start", start)
        where = {"organization_id": owner, "id": rollout}
        await bench.measured(f"rollout, {name}: stage 1 of 2, 5 %", partial(trio.sleep, 10.0))
        page = partial(bench.get, f"/rollouts/{owner}/{rollout}")
        await bench.measured("GET /rollouts/ROLLOUT", page, repeat=REPEATED, budget=PAGE)
        following = partial(bench.call, ROLLOUTS, "change_staged_rollout", **where, action="next")
        await bench.measured(f"rollout, {name}: next stage with all", following)
        await bench.measured(f"rollout, {name}: until all have it", partial(trio.sleep, 60.0), each=len(filled.parts))
        for path in (f"/rollouts/{owner}/{rollout}", "/rollouts", "/rollouts/versions", "/"):
            short = path.replace(f"{owner}/{rollout}", "ROLLOUT")
            await bench.measured(f"GET {short} during it", partial(bench.get, path), repeat=REPEATED, budget=PAGE)
        state = await bench.call(ROLLOUTS, "get_staged_rollout", **where)
        print(f"  {state['rollout']['state']}: {state['rollout']['reason']}", flush=True)
        back = partial(bench.call, ROLLOUTS, "change_staged_rollout", **where, action="back")
        await bench.measured(f"rollout, {name}: back", back)
        await trio.sleep(30)


async def change_rule(bench: Bench, filled: Filled) -> None:
    """Change a rule of which every machine fires an alert."""
    owner, condition = filled.owner.organization, {"path": "temperature", "comparison": "gte", "threshold": 31.0}
    rule = {"name": WARM.name, "kind": "reading", "condition": condition}
    work = partial(bench.call, ALERTS, "set_alert_rule", organization_id=owner, rule_id=filled.rule, rule=rule)
    await bench.measured("change of a rule with an alert of every machine", work)
    await bench.measured("what follows it", partial(trio.sleep, 10.0))


async def measure(database: Database, options: argparse.Namespace) -> list[str]:
    """Print all figures; return what is over its budget."""

    def chosen(name: str) -> bool:
        return not options.only or any(word in name for word in options.only)

    with tempfile.TemporaryDirectory() as name:
        async with prepared(Path(name), database, options.machines, options.every) as (bench, filled):
            await trio.sleep(options.settle)
            await bench.rest(IDLE)
            print(f"{'':58} {'wall ms':>8} {'processor':>9} {'step':>7} {'turn':>7} {'p99':>7}")
            await read(bench, filled, chosen)
            if not options.only or any(chosen(f"job {name}") for name in jobs(filled)):
                await change(bench, filled, options.changed, chosen)
            if chosen("rollout"):
                await roll_out(bench, filled, options.broken)
            if chosen("rule"):
                await change_rule(bench, filled)
            return bench.over


def main(argv: list[str]) -> int:
    """Measure; return 1 if something is over its budget."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", type=int, default=5000)
    parser.add_argument("--changed", type=int, default=200, help="machines of each bulk job")
    parser.add_argument("--broken", type=int, default=100, help="machines that break in the second rollout")
    parser.add_argument("--every", type=float, default=120.0, help="seconds between two polls of a machine")
    parser.add_argument("--settle", type=float, default=60.0, help="seconds to wait before the first figure")
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--only", nargs="+", default=(), help="measure only what contains one of these words")
    options = parser.parse_args(argv)
    over: list[str] = []
    with databases(options.database) as selected:
        for database in selected:
            over += trio.run(measure, database, options)
    print("\n".join(["over a budget:", *over]) if over else "everything is within its budget")
    return 1 if over else 0
