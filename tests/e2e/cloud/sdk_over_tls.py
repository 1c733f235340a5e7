"""The official SDK over verified TLS: `sdk_over_tls.py CLOUD MACHINE KEY_ID KEY`. Prints the machines and resources.

Without MACHINE it gets the machine's address from the cloud and uses its default transport, whose native helper
resolves names on the network.
"""

from __future__ import annotations

import asyncio
import sys

from viam.app.viam_client import ViamClient
from viam.robot.client import RobotClient
from viam.rpc.dial import Credentials, DialOptions


async def main(cloud: str, machine: str, key_id: str, key: str) -> None:
    credentials = Credentials(type="api-key", payload=key)
    app = await ViamClient.create_from_dial_options(
        DialOptions(auth_entity=key_id, credentials=credentials), app_url=f"https://{cloud}"
    )
    try:
        client = app.app_client
        (organization,) = await client.list_organizations()
        (location,) = await client.list_locations(organization.id)
        (listed,) = await client.list_robots(location.id)
        print(listed.name, flush=True)
        if not machine:
            robot = await app.connect_to_machine(id=listed.id)
            print(*(name.name for name in robot.resource_names))
            await robot.close()
            return
    finally:
        app.close()
    options = DialOptions(disable_webrtc=True, auth_entity=key_id, credentials=credentials, timeout=20)
    async with asyncio.timeout(60):
        robot = await RobotClient.at_address(
            machine, RobotClient.Options(dial_options=options, check_connection_interval=0)
        )
        print(*(name.name for name in robot.resource_names))
        await robot.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
