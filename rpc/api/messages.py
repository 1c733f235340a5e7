"""The published messages, loaded when first needed. Only this file imports `viam`.

Importing `viam` itself would replace `sys.excepthook`, patch a message class and load asyncio: half of the time that a
first message costs. The generated messages need none of that, only a parent package to hang from. So a stand-in of that
name is put in its place, which runs the real package's code should anybody ever ask it for something.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from functools import cache
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, ServiceDescriptor
    from google.protobuf.message import Message

_PACKAGE: Final = "viam"


class _StandIn(ModuleType):
    """The package without its code, until an attribute is wanted that only the code can give."""

    __spec__: ModuleSpec

    def __getattr__(self, name: str) -> Any:
        if self.__class__ is not _StandIn or (name.startswith("__") and name != "__version__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        self.__class__ = ModuleType  # type: ignore[assignment]  # its code imports from itself
        hook = sys.excepthook
        try:
            assert self.__spec__.loader is not None
            self.__spec__.loader.exec_module(self)
        finally:
            sys.excepthook = hook
        return getattr(self, name)


def _stand_in() -> None:
    if _PACKAGE in sys.modules:
        return
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None:
        raise ModuleNotFoundError("the published messages are missing; install viam-sdk", name=_PACKAGE)
    module = _StandIn(_PACKAGE)
    module.__spec__ = spec
    module.__file__ = spec.origin
    module.__loader__ = spec.loader
    module.__package__ = _PACKAGE
    module.__path__ = list(spec.submodule_search_locations or ())
    sys.modules[_PACKAGE] = module


@cache
def load(name: str) -> Any:
    """A module of messages by its name below the generated package, such as `component.motor.v1.motor_pb2`."""
    _stand_in()
    return importlib.import_module(f"{_PACKAGE}.gen.{name}")


def auth() -> Any:
    """AuthService: AuthenticateRequest, AuthenticateResponse, Credentials, ..."""
    return load("proto.rpc.v1.auth_pb2")


def common() -> Any:
    """What many APIs share: Pose, ResourceName, Geometry, DoCommandRequest, ..."""
    return load("common.v1.common_pb2")


def robot() -> Any:
    """RobotService."""
    return load("robot.v1.robot_pb2")


def signaling() -> Any:
    """SignalingService of WebRTC."""
    return load("proto.rpc.webrtc.v1.signaling_pb2")


def data_channel() -> Any:
    """The envelope of gRPC over a WebRTC data channel."""
    return load("proto.rpc.webrtc.v1.grpc_pb2")


def service(full_name: str, module: str) -> ServiceDescriptor:
    """Descriptor of a service; loads `module` (as for `load`)."""
    found: ServiceDescriptor = load(module).DESCRIPTOR.services_by_name[full_name.rpartition(".")[2]]
    return found


def message_class(descriptor: Descriptor) -> type[Message]:
    """The class of the messages that `descriptor` describes."""
    from google.protobuf.message_factory import GetMessageClass

    return GetMessageClass(descriptor)
