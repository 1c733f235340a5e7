"""Custom APIs: a base class and its protobuf service."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from engine import Resource
from rpc.api import APIS, add_api, implementation_problems, methods_for
from schema import API, ErrorKind, MachineError
from schema.document import RESOURCE_TYPES

if TYPE_CHECKING:
    from google.protobuf.descriptor import ServiceDescriptor

ResourceT = TypeVar("ResourceT", bound=Resource)

own_bases: Final[dict[API, type[Resource]]] = {}
"""The base classes of the APIs registered by `own_api`."""


def own_api(triple: str, service: ServiceDescriptor) -> Callable[[type[ResourceT]], type[ResourceT]]:
    """Class decorator for the base class of an API that is not published, such as `acme:service:summation`.

    `service` is its descriptor in the generated messages: `summation_pb2.DESCRIPTOR.services_by_name["SumService"]`.
    Methods of the class are named and typed like those of published APIs; each request has a field `name` with the name
    of the resource. RPCs without a method in the class, and RPCs with streams of requests, return UNIMPLEMENTED.

    Raises ConfigError or MachineError for a triple that is not valid for an API, and TypeError for a method that does
    not match its RPC.
    """
    api = API.parse(triple)
    if api.type not in RESOURCE_TYPES.values():
        raise MachineError(
            f"{api} is neither a component nor a service",
            kind=ErrorKind.INVALID,
            remedy=f"use {api.namespace}:service:{api.subtype}",
        )
    if api in APIS and api not in own_bases:
        raise MachineError(f"{api} is a published API", kind=ErrorKind.EXISTS, remedy="use your own namespace")
    add_api(api, service)

    def register(cls: type[ResourceT]) -> type[ResourceT]:
        implemented: list[Any] = [method for key, method in methods_for(api).items() if hasattr(cls, key)]
        if mismatches := [problem for method in implemented for problem in implementation_problems(method, cls)]:
            raise TypeError("; ".join(mismatches))
        if not any(method.name != "do_command" for method in implemented):
            raise TypeError(f"{cls.__name__} has no method of {service.full_name}")
        cls.API = api
        own_bases[api] = cls
        return cls

    return register
