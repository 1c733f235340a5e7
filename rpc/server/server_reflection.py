"""Server reflection, v1 and v1alpha: lists services and returns message descriptors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

from grpclib.const import Cardinality, Handler, Status

_METHOD = "ServerReflectionInfo"


def reflection(
    names: Callable[[], Iterable[str]],
    *,
    load: Callable[[str], None] | None = None,
    pools: Callable[[], Sequence[Any]] = tuple,
) -> Mapping[str, Handler]:
    """Return the handlers of both versions, by path.

    `names` returns the full names of the services, loaded or not. `load` is called with the full name of a service or
    message that no descriptor pool contains; it may load the matching messages. `pools` returns additional descriptor
    pools, searched after the default pool.
    """
    from google.protobuf.descriptor_pool import Default
    from grpclib.reflection.v1 import reflection_pb2 as v1
    from grpclib.reflection.v1alpha import reflection_pb2 as v1alpha

    handlers = {}
    for package, messages in (("grpc.reflection.v1", v1), ("grpc.reflection.v1alpha", v1alpha)):
        answers = _Reflection(messages, names, load, [Default()], pools)
        handlers[f"/{package}.ServerReflection/{_METHOD}"] = Handler(
            answers.serve,
            Cardinality.STREAM_STREAM,
            messages.ServerReflectionRequest,
            messages.ServerReflectionResponse,
        )
    return handlers


class _Reflection:
    def __init__(
        self,
        messages: ModuleType,
        names: Callable[[], Iterable[str]],
        load: Callable[[str], None] | None,
        first: Sequence[Any],
        pools: Callable[[], Sequence[Any]],
    ) -> None:
        self._messages = messages
        self._names = names
        self._load = load
        self._first = first
        self._pools = pools

    async def serve(self, stream: Any) -> None:
        """Answer requests in order until the client ends the stream."""
        async for request in stream:
            await stream.send_message(self.answer(request))

    def answer(self, request: Any) -> Any:
        """Return the response to one request; an error response if the name is unknown or the request is empty."""
        messages = self._messages
        question = request.WhichOneof("message_request")
        response = messages.ServerReflectionResponse(valid_host=request.host, original_request=request)
        try:
            if question == "list_services":
                response.list_services_response.service.extend(
                    messages.ServiceResponse(name=name) for name in sorted(self._names())
                )
            elif question == "file_by_filename":
                self._add(response, self._find("FindFileByName", request.file_by_filename))
            elif question == "file_containing_symbol":
                self._add(response, self._file_of(request.file_containing_symbol))
            elif question == "file_containing_extension":
                extension = request.file_containing_extension
                message = self._find("FindMessageTypeByName", extension.containing_type)
                self._add(response, message.file.pool.FindExtensionByNumber(message, extension.extension_number).file)
            elif question == "all_extension_numbers_of_type":
                message = self._find("FindMessageTypeByName", request.all_extension_numbers_of_type)
                numbers = response.all_extension_numbers_response
                numbers.base_type_name = message.full_name
                extensions = message.file.pool.FindAllExtensions(message)
                numbers.extension_number.extend(sorted(each.number for each in extensions))
            else:
                self._fail(response, Status.INVALID_ARGUMENT, "the request is empty")
        except KeyError:
            self._fail(response, Status.NOT_FOUND, "not found")
        return response

    def _file_of(self, symbol: str) -> Any:
        try:
            return self._find("FindFileContainingSymbol", symbol)
        except KeyError:
            if self._load is None:
                raise
        self._load(symbol)
        return self._find("FindFileContainingSymbol", symbol)

    def _find(self, method: str, name: str) -> Any:
        """Return the result of the first pool that contains `name`; KeyError if no pool does."""
        for pool in (*self._first, *self._pools()):
            try:
                return getattr(pool, method)(name)
            except KeyError:
                continue
        raise KeyError(name)

    @staticmethod
    def _add(response: Any, file: Any) -> None:
        response.file_descriptor_response.file_descriptor_proto.append(file.serialized_pb)

    @staticmethod
    def _fail(response: Any, status: Status, text: str) -> None:
        response.error_response.error_code = status.value
        response.error_response.error_message = text
