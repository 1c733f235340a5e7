"""A server that knows only the published API of this cloud and polls it, through the SDK's generated stubs."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import trio
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from grpclib import GRPCError, Status
from grpclib.client import Channel
from viam.app.app_client import AppClient
from viam.app.viam_client import ViamClient
from viam.gen.app.agent.v1 import agent_pb2
from viam.gen.app.agent.v1.agent_grpc import AgentDeviceServiceStub
from viam.gen.app.v1 import app_pb2, robot_pb2
from viam.gen.app.v1.robot_grpc import RobotServiceStub
from viam.gen.proto.rpc.v1 import auth_pb2
from viam.gen.proto.rpc.v1.auth_grpc import AuthServiceStub
from viam.proto.common import LogEntry
from viam.rpc.dial import DialOptions

from tests.e2e.cloud.process import CloudProcess, cloud

LIMIT: Final = 60  # seconds for all calls of a test
LONGEST: Final = 1000  # entries in a call, the maximum that the reference server sends
AGENT: Final = robot_pb2.AgentInfo(host="pi", os="linux", ips=["10.0.0.7"], version="v9.20.1", platform="linux/arm64")


class Polling:
    """Such a server: it has a part's id and secret, and an address."""

    def __init__(self, channel: Channel, part: str, secret: str) -> None:
        self.channel = channel
        self.part = part
        self.secret = secret
        self.robot = RobotServiceStub(channel)
        self.headers: dict[str, str] = {}

    async def sign_in(self) -> None:
        credentials = auth_pb2.Credentials(type="robot-secret", payload=self.secret)
        request = auth_pb2.AuthenticateRequest(entity=self.part, credentials=credentials)
        answer = await AuthServiceStub(self.channel).Authenticate(request)
        self.headers = {"authorization": f"Bearer {answer.access_token}"}

    async def config(self) -> robot_pb2.RobotConfig:
        request = robot_pb2.ConfigRequest(id=self.part, agent_info=AGENT)
        return (await self.robot.Config(request, metadata=self.headers)).config

    async def log(self, *entries: LogEntry) -> None:
        await self.robot.Log(robot_pb2.LogRequest(id=self.part, logs=entries), metadata=self.headers)

    async def needs_restart(self) -> robot_pb2.NeedsRestartResponse:
        return await self.robot.NeedsRestart(robot_pb2.NeedsRestartRequest(id=self.part), metadata=self.headers)

    async def certificate(self) -> robot_pb2.CertificateResponse:
        return await self.robot.Certificate(robot_pb2.CertificateRequest(id=self.part), metadata=self.headers)


async def refused(call: Any) -> Status:
    with pytest.raises(GRPCError) as caught:
        await call
    return caught.value.status


def sensors(*names: str) -> dict[str, Any]:
    return {"components": [{"name": name, "api": "rdk:component:sensor", "model": "fake"} for name in names]}


def names(config: robot_pb2.RobotConfig) -> list[str]:
    return [component.name for component in config.components]


async def with_machine(
    running: CloudProcess, context: ssl.SSLContext | None, work: Callable[[AppClient, Polling], Any]
) -> None:
    """Run `work` on the SDK's own loop, in a thread, with an owner and a server whose part was just created."""

    async def main() -> None:
        host, _, port = running.address.rpartition(":")
        options = DialOptions.with_api_key(running.key[1], running.key[0])
        options.insecure = context is None
        channel = Channel("localhost", int(port), ssl=context)
        try:
            async with asyncio.timeout(LIMIT):
                owner = await ViamClient.create_from_dial_options(options, app_url=f"{host}:{port}")
                try:
                    app = owner.app_client
                    (part,) = await app.get_robot_parts(await app.new_robot("rover", running.facts["location"]))
                    await work(app, Polling(channel, part.id, part.secret))
                finally:
                    owner.close()
        finally:
            channel.close()

    await trio.to_thread.run_sync(lambda: asyncio.run(main()))


async def polled(app: AppClient, server: Polling) -> None:
    """Make the calls of such a server in order, beginning with its start."""
    assert await refused(server.config()) is Status.UNAUTHENTICATED
    await server.sign_in()
    part = server.part
    await app.update_robot_part(part, "", sensors("a"))
    first = await server.config()
    assert (names(first), first.cloud.id, bool(first.revision)) == (["a"], part, True)
    again = await server.config()
    assert again == first, "nothing has changed: nothing is to be done"
    shared = await app.create_fragment((await app.list_organizations())[0].id, "shared", sensors("b"))
    document = {
        **sensors("a"),
        "fragments": [{"id": shared.id, "prefix": "left"}],
        "triggers": [{"name": "t", "event": {"type": "part_online"}, "notifications": []}],
    }
    await app.update_robot_part(part, "", document)
    merged = await server.config()
    assert sorted(names(merged)) == ["a", "left-b"]
    assert merged.revision != first.revision

    seen = await app.get_robot_part(part)
    assert seen.last_access is not None
    organization = (await app.list_organizations())[0].id
    fleet = await app._app_client.ListMachineSummaries(
        app_pb2.ListMachineSummariesRequest(organization_id=organization), metadata=app._metadata
    )
    (summary,) = fleet.location_summaries[0].machine_summaries[0].part_summaries
    assert (summary.os, summary.platform) == ("linux", "linux/arm64")
    assert summary.viam_server_version.minor == "9.20.1"
    assert [fragment.name for fragment in summary.fragments] == ["shared"]
    robot = await app.get_robot(seen.robot)
    assert robot.online_state == app_pb2.OnlineState.ONLINE_STATE_ONLINE

    entries = [LogEntry(host="pi", level="info", logger_name="rdk", message=f"m{number}") for number in range(LONGEST)]
    await server.log(*entries)
    logs = await app.get_robot_part_logs(part, num_log_entries=LONGEST)
    assert sorted(message.message for message in logs) == sorted(entry.message for entry in entries)

    await app.update_robot_part(part, "", {"network": {"bind_address": "nowhere"}})
    assert await refused(server.config()) is Status.INVALID_ARGUMENT, "malformed: it keeps what it runs, and says so"
    await app.update_robot_part(part, "", document)
    assert (await server.config()).components == merged.components

    calm = await server.needs_restart()
    assert (calm.must_restart, calm.restart_check_interval.ToTimedelta().total_seconds() >= 1) == (False, True)
    await app.mark_part_for_restart(part)
    assert [(await server.needs_restart()).must_restart for _ in range(2)] == [True, False]

    request = agent_pb2.DeviceAgentConfigRequest(
        id=part, host_info=agent_pb2.HostInfo(platform="linux/arm64", distro="debian")
    )
    agent = await AgentDeviceServiceStub(server.channel).DeviceAgentConfig(request, metadata=server.headers)
    assert agent.check_interval.ToTimedelta().total_seconds() >= 5

    others = (await app.get_robot_parts(await app.new_robot("other", seen.location_id)))[0]
    foreign = robot_pb2.ConfigRequest(id=others.id)
    assert await refused(server.robot.Config(foreign, metadata=server.headers)) is Status.NOT_FOUND


async def test_a_polling_server_without_tls(tmp_path: Path) -> None:
    async def work(app: AppClient, server: Polling) -> None:
        await polled(app, server)
        config = await server.config()
        assert config.cloud.signaling_insecure, "then the reference server asks for no certificate"
        assert await refused(server.certificate()) is Status.FAILED_PRECONDITION

        added = await app.create_robot_part_secret(server.part)
        assert added.secrets is not None
        assert (await server.config()).revision == config.revision
        old = next(secret.id for secret in added.secrets if secret.secret == server.secret)
        await app.delete_robot_part_secret(server.part, old)
        assert await refused(server.config()) is Status.UNAUTHENTICATED
        server.secret = next(item.secret for item in added.secrets if item.id != old)
        await server.sign_in()
        assert (await server.config()).revision == config.revision

    async with cloud(tmp_path / "cloud") as running:
        await with_machine(running, None, work)


async def test_a_polling_server_over_tls(tmp_path: Path) -> None:
    async def work(app: AppClient, server: Polling) -> None:
        await server.sign_in()
        await app.update_robot_part(server.part, "", sensors("a"))
        config = await server.config()
        assert (names(config), config.cloud.signaling_insecure) == (["a"], False)
        passed = await server.certificate()
        (leaf, *_) = x509.load_pem_x509_certificates(passed.tls_certificate.encode())
        key = load_pem_private_key(passed.tls_private_key.encode(), None)
        assert leaf.public_key() == key.public_key()
        alternatives = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert config.cloud.local_fqdn in alternatives.get_values_for_type(x509.DNSName)
        assert (await server.certificate()).tls_certificate == passed.tls_certificate, "hourly it asks again"

    async with cloud(tmp_path / "cloud", "--tls") as running:
        context = ssl.create_default_context()
        context.check_hostname = False  # trust itself is tested in test_certificates.py
        context.verify_mode = ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        await with_machine(running, context, work)
