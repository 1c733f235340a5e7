"""Which of the published calls a machine serves: every other one is listed here with its reason."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import Final

import viam.gen
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass
from grpclib import GRPCError, Status
from grpclib.client import StreamStreamMethod, StreamUnaryMethod, UnaryStreamMethod, UnaryUnaryMethod
from viam.robot.client import RobotClient

from tests.e2e.harness import Server
from tests.e2e.sdk.test_components import play
from tests.e2e.sdk.test_every_rpc import call

OTHERS: Final = {
    "viam.component.testecho.v1.TestEchoService": "an API for the tests of the reference",
    "viam.module.v1.ModuleService": "modules serve it, and the machine calls them",
    "viam.provisioning.v1.ProvisioningService": "machine-agent serves it",
}
"""Services that other programs serve, or none."""

ENDS: Final = "viam.robot.v1.RobotService.Shutdown"  # of the machine, so that it is not called here
REFUSED: Final = {
    "viam.robot.v1.RobotService/UploadDataFromPath": "the data manager uploads the folders of additional_sync_paths",
}
"""Calls that a machine refuses with a remedy."""
MISSING: Final = {
    "viam.robot.v1.RobotService/GetStatus": "each resource has its own GetStatus",
    "viam.robot.v1.RobotService/StreamStatus": "each resource has its own GetStatus",
    "viam.service.video.v1.VideoService/GetVideo": "no model stores video",
    "viam.service.video.v1.VideoService/DoCommand": "no model stores video",
    "viam.service.video.v1.VideoService/GetStatus": "no model stores video",
}
"""Calls that do not exist yet."""


def published() -> list[MethodDescriptor]:
    """Return the published calls, except those of a cloud."""
    methods: dict[str, MethodDescriptor] = {}
    for module in pkgutil.walk_packages(viam.gen.__path__, "viam.gen."):
        if module.name.endswith("_pb2"):
            for service in importlib.import_module(module.name).DESCRIPTOR.services_by_name.values():
                if not service.full_name.startswith(("viam.app.", "proto.")):
                    methods |= {method.full_name: method for method in service.methods}
    return list(methods.values())


def test_every_published_call_is_served_or_has_a_reason(tmp_path: Path) -> None:
    unknown: dict[str, str] = {}

    async def script(robot: RobotClient) -> None:
        for method in published():
            if method.full_name == ENDS:
                continue
            kinds = {
                (False, False): UnaryUnaryMethod,
                (False, True): UnaryStreamMethod,
                (True, False): StreamUnaryMethod,
                (True, True): StreamStreamMethod,
            }
            service, request = method.containing_service.full_name, GetMessageClass(method.input_type)
            kind = kinds[method.client_streaming, method.server_streaming]
            asked = kind(robot._channel, f"/{service}/{method.name}", request, GetMessageClass(method.output_type))
            try:
                await call(asked, request())
            except GRPCError as error:
                if error.status is Status.UNIMPLEMENTED:
                    unknown[f"{service}/{method.name}"] = error.message or ""
            except TimeoutError:
                pass

    with Server({}, tmp_path) as server:
        play(server.wait_running().address, script)
    mine = {call: text for call, text in unknown.items() if call.partition("/")[0] not in OTHERS}
    assert set(mine) == {*REFUSED, *MISSING}
    assert all("is not supported: " in mine[call] for call in REFUSED)
    print(f"{len(published()) - len(unknown)} of {len(published())} calls are served, {len(mine)} are not")
    print(f"{len(unknown) - len(mine)} belong to other programs")
