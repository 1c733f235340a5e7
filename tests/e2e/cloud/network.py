"""Cloud, machine and SDK in a network namespace with an address: `python -m tests.e2e.cloud.network FOLDER`.

The machine has no `bind_address`: with the cloud's certificate, other computers can connect.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import trio

from tests.e2e.cloud.process import cloud
from tests.e2e.cloud.test_certificates import SDK, Secured
from tests.e2e.cloud.test_machine import until

HOST = "192.0.2.7"  # RFC 5737: for documentation, not routed
UP = ("link set near up", "link set far up")


async def main(folder: Path) -> None:
    for words in ("link add near type veth peer name far", f"address add {HOST}/24 dev near", *UP):
        await trio.run_process(["ip", *words.split()])
    async with cloud(folder / "cloud", "--tls", "--listen", "0.0.0.0:8090") as running:
        secured = Secured(running, folder)
        secured.trust()
        await secured.join()
        secured.credentials["app_address"] = f"https://{HOST}:8090"
        async with secured.machine(network={"bind_address": ""}) as machine:

            async def reported() -> bool:
                async with secured.client() as client:
                    part = await client.call(
                        "viam.app.v1.AppService", "", "get_robot_part", id=secured.credentials["id"]
                    )
                return bool(part["part"]["fqdn"] == f"{HOST}:8080")

            await until(reported, "the cloud knows where the machine is reached")
            environment = {**os.environ, "SSL_CERT_FILE": str(secured.authorities)}
            command = [sys.executable, str(SDK), f"{HOST}:8090", "", *running.key]
            done = await trio.run_process(
                command, env=environment, capture_stdout=True, capture_stderr=True, check=False
            )
            said = done.stdout.splitlines()  # the SDK's log is among the lines
            assert (said[:1], said[-1:]) == ([b"rover"], [b"a"]), (done.stdout + done.stderr).decode()[-3000:]
            assert "all clients that reach this port" not in machine.log()
    print("reached")


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]))
