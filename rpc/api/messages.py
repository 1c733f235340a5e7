"""Messages of published services and of our own, loaded on first use. Only this module imports `viam`.

Importing `viam` itself replaces `sys.excepthook`, patches a message class and loads asyncio, which is half of the time
to load a first message. The generated messages need only a parent package. This module therefore registers a stand-in
for `viam`, which runs the code of the real package when one of its attributes is accessed, or when a module of it is
imported that is not generated.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from functools import cache
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from rpc.api import cloud_v1, own

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, ServiceDescriptor
    from google.protobuf.message import Message

_PACKAGE: Final = "viam"
_GENERATED: Final = "gen"


class _StandIn(ModuleType):
    """Package whose code is run on the first access to a missing attribute."""

    __spec__: ModuleSpec

    def __getattr__(self, name: str) -> Any:
        if self.__class__ is not _StandIn or (name.startswith("__") and name != "__version__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        self.run()
        return getattr(self, name)

    def run(self) -> None:
        """Run the code of the package, once."""
        if self.__class__ is not _StandIn:
            return
        self.__class__ = ModuleType  # type: ignore[assignment]  # first: its code imports from the package
        sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Finder)]
        hook = sys.excepthook
        try:
            assert self.__spec__.loader is not None
            self.__spec__.loader.exec_module(self)
        finally:
            sys.excepthook = hook


class _Finder:
    """Runs the package's code before one of its modules is imported that may rely on it; finds no modules itself."""

    def __init__(self, stand_in: _StandIn) -> None:
        self._stand_in = stand_in

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, rest = fullname.partition(".")
        if package != _PACKAGE or rest.partition(".")[0] in ("", _GENERATED):
            return None
        _StandIn.run(self._stand_in)
        module = sys.modules.get(fullname)  # the package's code may have imported it
        if module is None:
            return None
        return ModuleSpec(fullname, _Imported(module))  # type: ignore[arg-type]  # importlib.abc takes 20 ms to load


class _Imported:
    """Loader of a module that has been imported while it was searched for, so that it is not run a second time."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec


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
    sys.meta_path.insert(0, _Finder(module))


@cache
def load(name: str) -> Any:
    """Import a generated module by its name in the generated package, such as `component.motor.v1.motor_pb2`."""
    _stand_in()
    return importlib.import_module(f"{_PACKAGE}.gen.{name}")


def auth() -> Any:
    """Return the module of AuthService: AuthenticateRequest, AuthenticateResponse, Credentials, ..."""
    return load("proto.rpc.v1.auth_pb2")


def common() -> Any:
    """Return the module of common messages: Pose, ResourceName, Geometry, DoCommandRequest, ..."""
    return load("common.v1.common_pb2")


def robot() -> Any:
    """Return the module of RobotService."""
    return load("robot.v1.robot_pb2")


def signaling() -> Any:
    """Return the module of SignalingService for WebRTC."""
    return load("proto.rpc.webrtc.v1.signaling_pb2")


def data_channel() -> Any:
    """Return the module of the envelope messages of gRPC over a WebRTC data channel."""
    return load("proto.rpc.webrtc.v1.grpc_pb2")


def service(full_name: str, module: str) -> ServiceDescriptor:
    """Return the descriptor of a service; loads `module`, see `load`. Services of our own have no module."""
    if full_name in cloud_v1.SERVICES:
        return cloud_v1.service(full_name)
    if full_name == own.REMOTE_CONTROL:
        common()
        return own.remote_control()
    descriptor: ServiceDescriptor = load(module).DESCRIPTOR.services_by_name[full_name.rpartition(".")[2]]
    return descriptor


def message_class(descriptor: Descriptor) -> type[Message]:
    """Return the message class of `descriptor`."""
    from google.protobuf.message_factory import GetMessageClass

    return GetMessageClass(descriptor)
