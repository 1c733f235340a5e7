"""Client of gRPC reflection: gets the descriptors of a service from its server."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import Default, DescriptorPool
from google.protobuf.message import DecodeError
from grpclib.const import Cardinality, Status
from grpclib.exceptions import GRPCError
from grpclib.reflection.v1 import reflection_pb2 as v1
from grpclib.reflection.v1alpha import reflection_pb2 as v1alpha

from schema import ErrorKind, MachineError

MOST_FILES: Final = 500  # descriptor files of one service, including imports
_VERSIONS: Final = (("grpc.reflection.v1", v1), ("grpc.reflection.v1alpha", v1alpha))


async def service_descriptor(channel: Any, service: str) -> ServiceDescriptor:
    """Return the descriptor of a service, in its own pool. `service` is the full name.

    Raises MachineError if the server does not provide it or it is invalid. Has no time limit; the caller sets it.
    """
    files = await _files(channel, service)
    pool = DescriptorPool()
    added: set[str] = set()
    try:
        _add(pool, files, next(iter(files)), added)
        descriptor = pool.FindServiceByName(service)
    except (KeyError, TypeError, ValueError) as error:
        raise MachineError(f"the descriptors of {service} are inconsistent: {error}", kind=ErrorKind.INVALID) from None
    return descriptor


async def _files(channel: Any, service: str) -> dict[str, FileDescriptorProto]:
    """Return the file that defines the service and then all files that it imports, by name."""
    reason = ""
    for package, messages in _VERSIONS:
        try:
            return await _ask(channel, package, messages, service)
        except GRPCError as error:
            reason = error.message or error.status.name
            if error.status is not Status.UNIMPLEMENTED:
                break
    raise MachineError(f"its server does not provide the descriptor of {service}: {reason}", kind=ErrorKind.UNSUPPORTED)


async def _ask(channel: Any, package: str, messages: Any, service: str) -> dict[str, FileDescriptorProto]:
    files: dict[str, FileDescriptorProto] = {}
    path = f"/{package}.ServerReflection/ServerReflectionInfo"
    request, reply = messages.ServerReflectionRequest, messages.ServerReflectionResponse
    questions = deque([request(file_containing_symbol=service)])
    asked: set[str] = set()
    async with channel.request(path, Cardinality.STREAM_STREAM, request, reply) as stream:
        while questions:
            question = questions.popleft()
            await stream.send_message(question)
            answer = await stream.recv_message()
            if answer is None:
                raise MachineError(f"its server stopped sending descriptors of {service}", kind=ErrorKind.UNAVAILABLE)
            for data in answer.file_descriptor_response.file_descriptor_proto:
                try:
                    file = FileDescriptorProto.FromString(data)
                except DecodeError:
                    raise MachineError(f"a descriptor of {service} cannot be read", kind=ErrorKind.INVALID) from None
                files.setdefault(file.name, file)
            if not files:
                text = answer.error_response.error_message or "no descriptor"
                raise MachineError(f"its server does not know {service}: {text}", kind=ErrorKind.UNSUPPORTED)
            missing = {name for file in files.values() for name in file.dependency} - files.keys() - asked
            if len(files) + len(missing) > MOST_FILES:
                raise MachineError(f"{service} needs more than {MOST_FILES} descriptor files", kind=ErrorKind.INVALID)
            asked |= missing
            questions.extend(request(file_by_filename=name) for name in sorted(missing))
        await stream.end()
    return files


def _add(pool: DescriptorPool, files: dict[str, FileDescriptorProto], name: str, added: set[str]) -> None:
    """Add a file after its imports. Files that the server did not provide come from the default pool."""
    if name in added:
        return
    added.add(name)
    file = files.get(name)
    if file is None:
        file = FileDescriptorProto()
        Default().FindFileByName(name).CopyToProto(file)
    for needed in file.dependency:
        _add(pool, files, needed, added)
    pool.AddSerializedFile(file.SerializeToString())
