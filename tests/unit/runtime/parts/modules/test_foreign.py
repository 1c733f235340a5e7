"""APIs that only a module defines: descriptors by reflection, names in requests, forwarded metadata."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError

from rpc.api.memory import MemoryChannel
from rpc.api.server.target import CallInfo
from rpc.client.channel import Channel
from rpc.server.server_reflection import reflection
from runtime.parts.modules.foreign import ForeignApi, ForeignServices, Raw, check_service, published
from runtime.parts.modules.reflection import service_descriptor
from schema.errors import ErrorKind, MachineError
from schema.names import API

GIZMO = API("acme", "component", "gizmo")
SERVICE = "acme.gizmo.v1.GizmoService"


def file(name: str, *needs: str, service: bool = False, option: bytes = b"") -> FileDescriptorProto:
    stem = name.removesuffix(".proto")
    result = FileDescriptorProto(name=name, package="acme.gizmo.v1", syntax="proto3", dependency=needs)
    message = result.message_type.add(name=f"{stem.title()}Request")
    message.field.add(name="value", number=1, type=FieldDescriptorProto.TYPE_DOUBLE)
    message.field.add(name="name", number=2, type=FieldDescriptorProto.TYPE_STRING)
    if service:
        methods = result.service.add(name="GizmoService")
        for rpc, request, client, server in (
            ("Single", "GizmoRequest", False, False),
            ("Many", "GizmoRequest", False, True),
            ("All", "GizmoRequest", True, False),
            ("Each", "GizmoRequest", True, True),
            ("Nameless", "OddRequest", False, False),
        ):
            method = methods.method.add(
                name=rpc,
                input_type=f".acme.gizmo.v1.{request}",
                output_type=".acme.gizmo.v1.GizmoRequest",
                client_streaming=client,
                server_streaming=server,
            )
            if rpc == "Many":
                method.options.MergeFromString(option)
        odd = result.message_type.add(name="OddRequest")
        odd.field.add(name="value", number=1, type=FieldDescriptorProto.TYPE_DOUBLE)
    return result


def pool(*files: FileDescriptorProto) -> DescriptorPool:
    created = DescriptorPool()
    for item in files:
        created.AddSerializedFile(item.SerializeToString())
    return created


CHAIN = (file("base.proto"), file("middle.proto", "base.proto"), file("gizmo.proto", "middle.proto", service=True))


def reflecting(*files: FileDescriptorProto) -> MemoryChannel:
    result = pool(*files)
    return MemoryChannel(reflection(lambda: [SERVICE], pools=lambda: [result]))


async def test_descriptors_come_with_all_that_they_need() -> None:
    result = await service_descriptor(reflecting(*CHAIN), SERVICE)
    assert result.full_name == SERVICE
    assert [method.name for method in result.methods] == ["Single", "Many", "All", "Each", "Nameless"]
    assert result.file.dependencies[0].name == "middle.proto"
    assert result.file.dependencies[0].dependencies[0].name == "base.proto"


async def test_an_unknown_service_and_no_reflection_are_reasons() -> None:
    with pytest.raises(MachineError, match=r"does not know acme\.other\.v1\.OtherService"):
        await service_descriptor(reflecting(*CHAIN), "acme.other.v1.OtherService")
    with pytest.raises(MachineError, match="does not provide the descriptor of acme"):
        await service_descriptor(MemoryChannel({}), SERVICE)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([b"\xff\xff\xff"], "cannot be read"),
        ([file("gizmo.proto", "absent.proto", service=True).SerializeToString()], "are inconsistent"),
        ([file("other.proto").SerializeToString()], "are inconsistent"),
        (
            [
                file("gizmo.proto", "base.proto", service=True).SerializeToString(),
                file("base.proto", "gizmo.proto").SerializeToString(),
            ],
            "are inconsistent",
        ),
    ],
    ids=["garbage", "a-file-is-missing", "another-file", "a-circle"],
)
async def test_descriptors_of_a_liar(data: list[bytes], words: str) -> None:
    from grpclib.reflection.v1 import reflection_pb2 as messages

    async def lie(stream: Any) -> None:
        async for question in stream:
            response = messages.ServerReflectionResponse(original_request=question)
            if question.file_containing_symbol:
                response.file_descriptor_response.file_descriptor_proto.extend(data)
            else:
                response.error_response.error_code = 5
            await stream.send_message(response)

    handler = Handler(
        lie, Cardinality.STREAM_STREAM, messages.ServerReflectionRequest, messages.ServerReflectionResponse
    )
    path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
    with pytest.raises(MachineError, match=words):
        await service_descriptor(MemoryChannel({path: handler}), SERVICE)


def test_services_of_others_may_not_be_claimed() -> None:
    with pytest.raises(MachineError, match="is not the service of"):
        check_service(GIZMO, "viam.robot.v1.RobotService")
    check_service(GIZMO, SERVICE)
    slam = published(API("rdk", "service", "slam"))
    assert slam is not None
    assert slam.service == "viam.service.slam.v1.SLAMService"
    assert published(GIZMO) is None


class Module:
    """The module's server, and the target that leads to it."""

    def __init__(self) -> None:
        self.calls: list[CallInfo] = []
        self.name = "gizmo"

    def channel(self) -> MemoryChannel:
        handlers = {
            f"/{SERVICE}/{name}": Handler(getattr(self, name.lower()), cardinality, Raw, Raw)
            for name, cardinality in (
                ("Single", Cardinality.UNARY_UNARY),
                ("Many", Cardinality.UNARY_STREAM),
                ("All", Cardinality.STREAM_UNARY),
                ("Each", Cardinality.STREAM_STREAM),
            )
        }
        return MemoryChannel(handlers)

    async def single(self, stream: Any) -> None:
        request = await stream.recv_message()
        if b"refuse" in request:
            raise GRPCError(Status.ABORTED, "no")
        await stream.send_initial_metadata(metadata={"x-got": ",".join(sorted(stream.metadata))})
        await stream.send_message(request)

    async def many(self, stream: Any) -> None:
        request = await stream.recv_message()
        for _ in range(3):
            await stream.send_message(request)

    async def all(self, stream: Any) -> None:
        await stream.send_message(Raw(b"".join([bytes(request) async for request in stream])))

    async def each(self, stream: Any) -> None:
        async for request in stream:
            await stream.send_message(request)

    @asynccontextmanager
    async def call(self, info: CallInfo) -> AsyncIterator[Any]:
        self.calls.append(info)
        if info.name != "gizmo":
            raise MachineError("no such gizmo", kind=ErrorKind.NOT_FOUND)
        yield self


@pytest.fixture
def module() -> Module:
    return Module()


@pytest.fixture
def client(module: Module) -> MemoryChannel:
    services = ForeignServices()
    services.serve([ForeignApi(GIZMO, pool(*CHAIN).FindServiceByName(SERVICE))])

    class Router:
        def get(self, path: str) -> Handler | None:
            return services.handler(path, module)

    return MemoryChannel(Router())


def request(name: str = "gizmo", more: bytes = b"") -> Raw:
    """Return a message with the field `name` and one unknown field."""
    return Raw(bytes((0x12, len(name))) + name.encode() + b"\x7a" + bytes((len(more),)) + more)


async def exchange(client: MemoryChannel, rpc: str, *requests: Raw, metadata: Mapping[str, str] | None = None) -> Any:
    cardinality = {"All": Cardinality.STREAM_UNARY, "Each": Cardinality.STREAM_STREAM}.get(rpc, Cardinality.UNARY_UNARY)
    replies = []
    async with client.request(f"/{SERVICE}/{rpc}", cardinality, Raw, Raw, metadata=metadata) as stream:
        for item in requests:
            await stream.send_message(item)
        await stream.end()
        while (reply := await stream.recv_message()) is not None:
            replies.append(bytes(reply))
        return replies, stream.initial_metadata


async def test_messages_pass_as_they_are_in_all_four_shapes(client: MemoryChannel, module: Module) -> None:
    odd = request(more=b"unknown field")
    assert (await exchange(client, "Single", odd))[0] == [odd]
    assert (await exchange(client, "Many", odd))[0] == [odd] * 3
    assert (await exchange(client, "All", odd, odd))[0] == [odd * 2]
    assert (await exchange(client, "Each", odd, Raw(b""), odd))[0] == [odd, b"", odd]
    assert [(call.name, call.method, call.streaming) for call in module.calls] == [
        ("gizmo", "single", False), ("gizmo", "many", True), ("gizmo", "all", True), ("gizmo", "each", True)
    ]  # fmt: skip
    assert {str(call.api) for call in module.calls} == {"acme:component:gizmo"}


async def test_metadata_passes_but_no_key_to_this_machine(client: MemoryChannel) -> None:
    _, initial = await exchange(client, "Single", request(), metadata={"authorization": "Bearer x", "x-mine": "1"})
    assert initial["x-got"] == "x-mine"


async def test_errors_pass(client: MemoryChannel) -> None:
    for first, status, words in (
        (request(more=b"refuse"), Status.ABORTED, "no"),
        (request("other"), Status.NOT_FOUND, "no such gizmo"),
        (Raw(b"\xff"), Status.INVALID_ARGUMENT, "not a valid GizmoRequest"),
    ):
        with pytest.raises(GRPCError) as caught:
            await exchange(client, "Single", first)
        assert (caught.value.status, words in str(caught.value.message)) == (status, True)
    with pytest.raises(GRPCError) as caught:
        await exchange(client, "Nameless", Raw(b""))
    assert caught.value.status is Status.UNIMPLEMENTED
    with pytest.raises(GRPCError) as caught:
        await exchange(client, "Absent", Raw(b""))
    assert caught.value.status is Status.UNIMPLEMENTED


async def test_a_module_that_is_gone_is_named(client: MemoryChannel, module: Module) -> None:
    """The channel notices the end of a killed module before the process is reaped."""

    async def connect() -> trio.abc.Stream:
        raise ConnectionRefusedError("connection refused")

    async with Channel("unix:/gone", connect=connect) as channel:
        module.channel = lambda: channel  # type: ignore[method-assign,assignment,return-value]
        with pytest.raises(
            GRPCError, match=r"gizmo: the connection to its module was lost: .*connection refused"
        ) as caught:
            await exchange(client, "Single", request())
    assert caught.value.status is Status.UNAVAILABLE


async def test_a_cancelled_call_is_cancelled_at_the_module(client: MemoryChannel, module: Module) -> None:
    began, ended = trio.Event(), trio.Event()

    async def hang(stream: Any) -> None:
        began.set()
        try:
            await trio.sleep_forever()
        finally:
            ended.set()

    module.single = hang  # type: ignore[method-assign]
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(exchange, client, "Single", request())
            await began.wait()
            nursery.cancel_scope.cancel()
        await ended.wait()


def test_served_apis_change_with_the_modules() -> None:
    services, first = ForeignServices(), ForeignApi(GIZMO, pool(*CHAIN).FindServiceByName(SERVICE))
    assert services.handler(f"/{SERVICE}/Single", Module()) is None
    services.serve([first])
    assert services.handler(f"/{SERVICE}/Single", Module()) is not None
    assert services.names() == [SERVICE]
    assert services.service_of(GIZMO) == SERVICE
    services.serve([])
    assert services.handler(f"/{SERVICE}/Single", Module()) is None
    assert services.service_of(GIZMO) is None
