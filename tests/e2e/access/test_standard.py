"""Reflection and health of a real machine-server and machine-cloud, as standard clients use them."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from grpclib.const import Status
from grpclib.exceptions import GRPCError
from grpclib.health.v1.health_grpc import HealthStub
from grpclib.health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from rpc.client.channel import Channel
from tests.e2e.access.test_routes import KEY
from tests.e2e.cloud.process import cloud
from tests.e2e.server.process import server

LIMIT = 60.0
STANDARD = {
    "proto.rpc.v1.AuthService",
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
}
OWN = {"machine": "viam.robot.v1.RobotService", "cloud": "viam.app.v1.AppService"}


@asynccontextmanager
async def running(kind: str, folder: Path) -> AsyncIterator[tuple[str, tuple[str, str]]]:
    """Run one of the two programs; yield its address and its key."""
    if kind == "machine":
        async with server(folder, {"auth": {"handlers": [KEY]}}, "-disable-mdns", running=True) as machine:
            yield machine.address, ("id-of-key", "the key itself")
    else:
        async with cloud(folder) as process:
            yield process.address, process.key


async def signed_in(address: str, key: tuple[str, str]) -> dict[str, str]:
    auth = importlib.import_module("rpc.api.messages").auth()
    async with Channel(address) as channel:
        request = auth.AuthenticateRequest(entity=key[0], credentials=auth.Credentials(type="api-key", payload=key[1]))
        path = "/proto.rpc.v1.AuthService/Authenticate"
        from grpclib.client import UnaryUnaryMethod

        method = UnaryUnaryMethod(channel, path, auth.AuthenticateRequest, auth.AuthenticateResponse)  # type: ignore[arg-type]
        return {"authorization": f"Bearer {(await method(request)).access_token}"}


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
@pytest.mark.parametrize("kind", OWN)
async def test_every_listed_service_is_described(tmp_path: Path, kind: str, version: str) -> None:
    """Fetch dependencies too: a client builds each service only from the descriptors that reflection returns."""
    messages = importlib.import_module(f"grpclib.reflection.{version}.reflection_pb2")
    stubs = importlib.import_module(f"grpclib.reflection.{version}.reflection_grpc")
    with trio.fail_after(LIMIT):
        async with running(kind, tmp_path) as (address, key), Channel(address) as channel:
            metadata = await signed_in(address, key)
            stub = stubs.ServerReflectionStub(channel)
            with pytest.raises(GRPCError) as caught:
                await stub.ServerReflectionInfo([messages.ServerReflectionRequest(list_services="")])
            assert caught.value.status is Status.UNAUTHENTICATED
            async with stub.ServerReflectionInfo.open(metadata=metadata) as stream:

                async def ask(**question: str) -> Any:
                    await stream.send_message(messages.ServerReflectionRequest(**question))
                    return await stream.recv_message()

                listed = await ask(list_services="")
                names = [service.name for service in listed.list_services_response.service]
                assert {*STANDARD, OWN[kind]} <= set(names)
                files: dict[str, FileDescriptorProto] = {}

                async def take(answer: Any) -> None:
                    assert not answer.HasField("error_response"), answer
                    for raw in answer.file_descriptor_response.file_descriptor_proto:
                        file = FileDescriptorProto.FromString(raw)
                        if file.name not in files:
                            files[file.name] = file
                            for name in file.dependency:
                                if name not in files:
                                    await take(await ask(file_by_filename=name))

                for name in names:
                    await take(await ask(file_containing_symbol=name))
                await stream.end()
    pool = DescriptorPool()

    def add(name: str) -> None:
        if name in files:
            file = files.pop(name)
            for dependency in file.dependency:
                add(dependency)
            pool.Add(file)

    for name in list(files):
        add(name)
    assert all(pool.FindServiceByName(name).methods for name in names)


@pytest.mark.parametrize("kind", OWN)
async def test_health(tmp_path: Path, kind: str) -> None:
    with trio.fail_after(LIMIT):
        async with running(kind, tmp_path) as (address, key), Channel(address) as channel:
            metadata = await signed_in(address, key)
            stub = HealthStub(channel)  # type: ignore[arg-type]
            assert (await stub.Check(HealthCheckRequest())).status == HealthCheckResponse.SERVING
            for service in ("", *STANDARD, OWN[kind]):
                answer = await stub.Check(HealthCheckRequest(service=service), metadata=metadata)
                assert answer.status == HealthCheckResponse.SERVING
            for service, text, status in (
                (OWN[kind], {}, Status.UNAUTHENTICATED),
                ("", {"authorization": "Bearer x.y.z"}, Status.UNAUTHENTICATED),
                ("no.such.Service", metadata, Status.NOT_FOUND),
            ):
                with pytest.raises(GRPCError) as caught:
                    await stub.Check(HealthCheckRequest(service=service), metadata=text)
                assert caught.value.status is status
            with pytest.raises(GRPCError) as caught:
                await stub.Watch(HealthCheckRequest())
            assert caught.value.status is Status.UNAUTHENTICATED
            for service, state in (
                ("", HealthCheckResponse.SERVING),
                ("no.such.Service", HealthCheckResponse.SERVICE_UNKNOWN),
            ):
                async with stub.Watch.open(metadata=metadata) as stream:
                    await stream.send_message(HealthCheckRequest(service=service), end=True)
                    answer = await stream.recv_message()
                    assert answer is not None
                    assert answer.status == state
                    await stream.cancel()
