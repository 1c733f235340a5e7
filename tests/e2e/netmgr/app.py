"""A provisioning app with the stubs of the SDK: `python -m tests.e2e.netmgr.app PORT SECRET`; prints JSON."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from grpclib.client import Channel
from grpclib.exceptions import GRPCError
from viam.proto.provisioning import (
    APIKey,
    CloudConfig,
    ExitProvisioningRequest,
    GetNetworkListRequest,
    GetSmartMachineStatusRequest,
    ProvisioningServiceStub,
    SetNetworkCredentialsRequest,
    SetSmartMachineCredentialsRequest,
)


async def main(port: int, secret: str) -> dict[str, Any]:
    channel = Channel("127.0.0.1", port)
    stub = ProvisioningServiceStub(channel)
    cloud = CloudConfig(
        id="p1", app_address="https://cloud.example", api_key=APIKey(id="key id", key="a secret of the cloud")
    )
    status = await stub.GetSmartMachineStatus(GetSmartMachineStatusRequest())
    networks = await stub.GetNetworkList(GetNetworkListRequest())
    await stub.SetNetworkCredentials(SetNetworkCredentialsRequest(type="wifi", ssid="home", psk="correct horse"))
    errors = {}
    for name, request in {
        "short": SetNetworkCredentialsRequest(type="wifi", ssid="home", psk="short"),
        "wired": SetNetworkCredentialsRequest(type="wired", ssid="home", psk="correct horse"),
    }.items():
        try:
            await stub.SetNetworkCredentials(request)
        except GRPCError as error:
            errors[name] = [error.status.name, error.message]
    try:
        await stub.SetSmartMachineCredentials(SetSmartMachineCredentialsRequest(cloud=cloud))
    except GRPCError as error:
        errors["locked"] = [error.status.name, error.message]
    proof = {"device-secret": secret}
    await stub.SetSmartMachineCredentials(SetSmartMachineCredentialsRequest(cloud=cloud), metadata=proof)
    await stub.ExitProvisioning(ExitProvisioningRequest())
    channel.close()
    return {
        "manufacturer": status.provisioning_info.manufacturer,
        "configured": status.has_smart_machine_credentials,
        "attempt": [status.latest_connection_attempt.ssid, status.latest_connection_attempt.last_error],
        "errors": list(status.errors),
        "networks": [[network.ssid, network.security, network.signal] for network in networks.networks],
        "refused": errors,
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(int(sys.argv[1]), sys.argv[2]))))
