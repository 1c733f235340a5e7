"""What `make run` starts: a cloud, and a machine of simulated hardware that is joined to it. Ctrl-C ends both in order.

Everything is kept in `.run`: start it again and all is as it was. `rm -r .run` begins anew.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any

import trio

from nursery_graph import Graph, Node, ProcessFailed, State, process_group
from rpc.api.client import ApiClient
from rpc.client import Channel
from rpc.credentials import ApiKey

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".run"
CLOUD = f"localhost:{os.environ.get('CLOUD_PORT', '8090')}"
MACHINE = f"localhost:{os.environ.get('PORT', '8080')}"
APP = "viam.app.v1.AppService"


async def program(
    module: str,
    arguments: Sequence[str],
    deps: Mapping[str, Any],
    /,
    *,
    task_status: trio.TaskStatus[None],
) -> None:
    """One of our programs as a node: ready when its port is open, ended in order when the node stops."""
    read, write = os.pipe()
    environment = {**os.environ, "MACHINE_READY_FD": str(write), "MACHINE_HOME": str(HOME / "machine")}
    command = [sys.executable, "-m", module, *arguments]
    printed = HOME / "key.txt"
    with printed.open("ab") if module == "cloud.cli" else open(os.dup(1), "wb") as output:  # noqa: ASYNC230 - a log
        os.chmod(printed, 0o600)
        async with process_group(command, grace=60, pass_fds=[write], env=environment, stdout=output) as group:
            os.close(write)
            async with trio.open_nursery() as nursery, aclosing(trio.lowlevel.FdStream(read)) as pipe:

                async def ready() -> None:
                    if await pipe.receive_some(1):
                        task_status.started()

                nursery.start_soon(ready)
                status = await group.wait()
                nursery.cancel_scope.cancel()
            raise ProcessFailed(command, status)


async def joined(deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
    """The first time: make the machine in the cloud, give it its configuration, keep what it joins with."""
    lines = [line.strip().rpartition("  ") for line in (HOME / "key.txt").read_text().splitlines()]
    facts = {name.strip(): value for name, _, value in lines}
    key, secret, location = facts["key id"], facts["key"], facts["location"]
    keep(
        HOME / "env",
        f"export MACHINE_CLOUD=http://{CLOUD} MACHINE_CLOUD_KEY_ID={key} MACHINE_CLOUD_KEY={secret}\n"
        f"export MACHINE_ADDRESS={MACHINE} MACHINE_API_KEY_ID={key} MACHINE_API_KEY={secret}\n",
    )
    if not (HOME / "bench.json").exists():
        async with Channel(CLOUD, credentials=ApiKey(key, secret)) as channel:
            client = ApiClient(channel)
            machine = await client.call(APP, "", "new_robot", name="bench", location=location)
            (part,) = await client.call(APP, "", "get_robot_parts", robot_id=machine)
            text = (ROOT / "examples" / "bench.json").read_text()
            await client.call(APP, "", "update_robot_part", id=part["id"], name="", robot_config_json=text)
        keep(
            HOME / "bench.json",
            json.dumps(
                {
                    "cloud": {"id": part["id"], "secret": part["secret"], "app_address": f"http://{CLOUD}"},
                    "network": {"bind_address": MACHINE},
                }
            ),
        )
    task_status.started()
    await trio.sleep_forever()


def keep(path: Path, text: str) -> None:
    """Write a file that only its owner reads, whole or not at all."""
    new = path.with_suffix(".new")
    new.touch(mode=0o600)
    new.write_text(text)
    new.replace(path)


async def announce(graph: Graph, problems: list[str]) -> None:
    """Say what to open, or why it does not start."""
    async for snapshot in graph.changes():
        for name, node in snapshot.nodes.items():
            if node.state is State.UNHEALTHY:
                print(f"\n{name}: {node.reason}", file=sys.stderr)
                problems.append(node.reason)
                graph.stop("it could not start")
                return
        machine = snapshot.nodes.get("machine")
        if machine is not None and machine.state is State.READY:
            break
    key, secret = (word.partition("=")[2] for word in (HOME / "env").read_text().splitlines()[0].split()[2:])
    print(
        f"\nThe cloud:    http://{CLOUD}      configuration, history, logs, data and triggers of all machines"
        f"\nThe machine:  http://{MACHINE}      its own page"
        f"\nSign in to both with the key   {key}"
        f"\nand its secret                 {secret}"
        f"\nIn a second terminal: . .venv/bin/activate; . .run/env; machine status; machine cloud machines"
        f"\nCtrl-C ends both.\n",
        flush=True,
    )


async def main() -> int:
    """Run both until Ctrl-C."""
    HOME.mkdir(mode=0o700, exist_ok=True)
    cloud = ["--data", str(HOME / "cloud"), "--listen", CLOUD]
    machine = ["-config", str(HOME / "bench.json")]
    problems: list[str] = []
    graph = Graph(shutdown_timeout=120)
    graph.apply(
        [
            Node("cloud", partial(program, "cloud.cli", cloud)),
            Node("joined", joined, requires={"cloud"}),
            Node("machine", partial(program, "runtime.cli", machine), requires={"joined"}),
        ]
    )
    async with trio.open_nursery() as nursery:

        async def stop(*, task_status: trio.TaskStatus[None]) -> None:
            with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                task_status.started()
                await anext(aiter(signals))
                graph.stop("told to")

        await nursery.start(stop)
        nursery.start_soon(announce, graph, problems)
        await graph.run()
        nursery.cancel_scope.cancel()
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(trio.run(main))
