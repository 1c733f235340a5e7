"""Start a cloud and a machine with simulated hardware that joins it, for `make run`. Ctrl-C stops both in order.

All data is in `.run`: start the program again to continue with it, or run `rm -r .run` to start from scratch.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import trio

from command import Connection, Unreachable, link_to
from nursery_graph import Graph, Node, ProcessFailed, State, process_group
from rpc.access import TICKET_LIFE
from rpc.api import ApiClient
from rpc.client import ApiKey, Channel
from schema import MachineError

ROOT = Path(__file__).resolve().parent.parent
HOME = Path(os.environ.get("RUN_HOME", ROOT / ".run"))
BENCH = ROOT / "examples" / "bench.json"
CLOUD = f"localhost:{os.environ.get('CLOUD_PORT', '8090')}"
MACHINE = f"localhost:{os.environ.get('PORT', '8080')}"
HOOK_PORT = os.environ.get("WEBHOOK_PORT", str(int(MACHINE.rpartition(":")[2]) + 19))  # of examples/webhook_receiver.py
APP = "viam.app.v1.AppService"
MORE = "Press Enter for new links" if sys.stdin is not None and sys.stdin.isatty() else "For new ones: machine open"


async def program(
    module: str,
    arguments: Sequence[str],
    deps: Mapping[str, Any],
    /,
    *,
    task_status: trio.TaskStatus[None],
) -> None:
    """Run one of our programs as a node: ready when its port is open, shut down in order when the node stops."""
    read, write = os.pipe()
    environment = {**os.environ, "MACHINE_READY_FD": str(write), "MACHINE_HOME": str(HOME / "machine")}
    command = [sys.executable, "-m", module, *arguments]
    log = HOME / f"{module.partition('.')[0]}.log"
    log.touch(mode=0o600)  # the first start of the cloud prints a key
    options = {"pass_fds": [write], "env": environment, "stderr": subprocess.STDOUT}
    with log.open("ab") as output:
        async with process_group(command, grace=60, stdout=output, **options) as group:
            os.close(write)
            async with aclosing(trio.lowlevel.FdStream(read)) as pipe, trio.open_nursery() as nursery:

                async def ready() -> None:
                    if await pipe.receive_some(1):
                        task_status.started()

                nursery.start_soon(ready)
                status = await group.wait()
                nursery.cancel_scope.cancel()
            raise ProcessFailed(command, status)


async def joined(deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
    """At the first start, create the machine in the cloud, save its configuration and store its credentials."""
    lines = [line.strip().rpartition("  ") for line in (HOME / "cloud.log").read_text().splitlines()]
    printed_values = {name.strip(): value for name, _, value in lines}
    key, secret, location = printed_values["key id"], printed_values["key"], printed_values["location"]
    signing = HOME / "webhook-secret"
    if not signing.exists():
        keep(signing, "whsec_" + base64.b64encode(secrets.token_bytes(24)).decode())
    keep(
        HOME / "env",
        f"export MACHINE_CLOUD=http://{CLOUD} MACHINE_CLOUD_KEY_ID={key} MACHINE_CLOUD_KEY={secret}\n"
        f"export MACHINE_ADDRESS={MACHINE} MACHINE_API_KEY_ID={key} MACHINE_API_KEY={secret}\n"
        f"export WEBHOOK_PORT={HOOK_PORT} WEBHOOK_SECRET={signing.read_text()}\n",
    )
    credentials = HOME / "bench.json"
    if credentials.exists():
        part = json.loads(credentials.read_text())["cloud"]
    else:
        part = await create_machine(ApiKey(key, secret), location, signing.read_text())
    part = {"id": part["id"], "secret": part["secret"], "app_address": f"http://{CLOUD}"}
    keep(credentials, json.dumps({"cloud": part, "network": {"bind_address": MACHINE}}))
    task_status.started()
    await trio.sleep_forever()


async def create_machine(key: ApiKey, location: str, signing: str) -> Mapping[str, Any]:
    """Create a machine with the configuration of examples/bench.json; return its part."""
    async with Channel(CLOUD, credentials=key) as channel:
        client = ApiClient(channel)
        machine = await client.call(APP, "", "new_robot", name="bench", location=location)
        (part,) = await client.call(APP, "", "get_robot_parts", robot_id=machine)
        text = json.dumps(with_data(json.loads(BENCH.read_text()), signing))
        await client.call(APP, "", "update_robot_part", id=part["id"], name="", robot_config_json=text)
        machine_part: Mapping[str, Any] = part
        return machine_part


def with_data(bench: dict[str, Any], signing: str) -> dict[str, Any]:
    """Add data capture and a trigger for examples/webhook_receiver.py to the configuration `bench`.

    Its webhooks are signed with the secret `signing`.
    """
    captured = {"climate": {"method": "Readings", "capture_frequency_hz": 1}}
    captured["camera"] = {"method": "GetImages", "capture_frequency_hz": 0.1}
    for entry in bench["components"]:
        if entry["name"] in captured:
            attributes = {"capture_methods": [captured[entry["name"]]]}
            entry["service_configs"] = [{"type": "data_manager", "attributes": attributes}]
    manager = {"name": "data", "api": "rdk:service:data_manager", "model": "builtin"}
    bench["services"].append({**manager, "attributes": {"sync_interval_mins": 0.1}})
    hook = {"type": "webhook", "value": f"http://localhost:{HOOK_PORT}/"}
    warm = {"operator": "gt", "value": {"temperature_c": 15}}
    bench["triggers"] = [
        {
            "name": "warm",
            "event": {
                "type": "conditional_data_ingested",
                "conditional": {"data_capture_method": "sensor:climate:Readings", "conditions": {"evals": [warm]}},
            },
            "notifications": [{**hook, "secret": signing, "seconds_between_notifications": 60}],
        }
    ]
    return bench


def keep(path: Path, text: str) -> None:
    """Write a file atomically, readable only by its owner."""
    new = path.with_suffix(".new")
    new.touch(mode=0o600)
    new.write_text(text)
    new.replace(path)


async def announce(graph: Graph, problems: list[str]) -> None:
    """Print the addresses to open, or the reason why the start failed."""
    async for snapshot in graph.changes():
        for name, node in snapshot.nodes.items():
            if node.state is State.UNHEALTHY:
                print(f"\n{name} could not start: {node.reason}; see the logs in {HOME}", file=sys.stderr)
                problems.append(node.reason)
                graph.stop("it could not start")
                return
        machine = snapshot.nodes.get("machine")
        if machine is not None and machine.state is State.READY:
            break
    print(
        f"\nIn a second terminal: . .venv/bin/activate; . {HOME.name}/env; machine status; machine cloud machines"
        f"\nContinue with the tour in README.md. Logs are in {HOME.name}/, the key is in {HOME.name}/env."
    )
    await print_links()
    await wait_for_enter()


async def print_links() -> None:
    """Print a link to the cloud and one to the machine, which log in."""
    text = (HOME / "env").read_text()
    key_id, key = (text.partition(f"MACHINE_CLOUD_{name}=")[2].split()[0] for name in ("KEY_ID", "KEY"))
    login = Connection("", api_key_id=key_id, api_key=key)
    cloud, machine = [await link(replace(login, address=address)) for address in (CLOUD, MACHINE)]
    print(
        f"\nThe cloud:    {cloud}"
        f"\nThe machine:  {machine}"
        f"\nEach link logs in once, within {TICKET_LIFE} seconds. {MORE}. Stop them with Ctrl-C.\n",
        flush=True,
    )


async def link(login: Connection) -> str:
    """Return a link that logs in, or the address and the reason why there is none.

    A machine that is started with another PORT than before uses the old one for a moment.
    """
    for pause in (0.2, 0.5, 1.0, 2.0, 4.0, 0.0):
        try:
            return await link_to(login)
        except (MachineError, Unreachable) as error:
            reason = error
        await trio.sleep(pause)
    return f"http://{login.address}  (there is no link that logs in: {reason})"


async def wait_for_enter() -> None:
    """Print new links whenever the user presses Enter. Return at the end of standard input, or if that is a file."""
    while sys.stdin is not None and sys.stdin.isatty():
        await trio.lowlevel.wait_readable(sys.stdin)
        if not os.read(sys.stdin.fileno(), 1024):
            return
        await print_links()


async def main() -> int:
    """Run both until Ctrl-C."""
    print("Starting a cloud and a machine ...", flush=True)
    os.makedirs(HOME, mode=0o700, exist_ok=True)
    cloud = ["--data", str(HOME / "cloud"), "--listen", CLOUD, "--webhook-allow", "localhost"]
    machine = ["-config", str(HOME / "bench.json")]
    problems: list[str] = []
    graph = Graph(shutdown_timeout=120)
    graph.apply(
        [
            Node("cloud", partial(program, "cloud.server.cli", cloud)),
            Node("joined", joined, requires={"cloud"}),
            Node("machine", partial(program, "runtime.server.cli", machine), requires={"joined"}),
        ]
    )
    async with trio.open_nursery() as nursery:

        async def stop(*, task_status: trio.TaskStatus[None]) -> None:
            with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                task_status.started()
                await anext(aiter(signals))
                graph.stop("a signal")

        await nursery.start(stop)
        nursery.start_soon(announce, graph, problems)
        await graph.run()
        nursery.cancel_scope.cancel()
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(trio.run(main))
