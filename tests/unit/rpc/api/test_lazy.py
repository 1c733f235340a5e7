"""Modules are loaded on first use, and the published package is never imported."""

import json
import subprocess
import sys

import pytest

from engine.apis import BASES
from engine.components.motion.motor import Motor
from rpc.api.server.router import ApiRouter
from schema.names import API


def run(script):
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_router_costs_nothing_until_the_first_call():
    facts = run("""
import json, sys
from rpc.api.server.router import ApiRouter
from engine.apis import BASES
router = ApiRouter(type("T", (), {"call": None})(), bases=BASES, services={"viam.robot.v1.RobotService": "x:Y"})
heavy = ("google.protobuf", "viam", "engine.components.", "grpclib")
before = [name for name in sys.modules if name.startswith(heavy)]
unknown = router.get("/viam.component.motor.v1.MotorService/Fly") is None
after = "viam.gen.component.motor.v1.motor_pb2" in sys.modules
other = "viam.gen.component.arm.v1.arm_pb2" in sys.modules
print(json.dumps([before, unknown, after, other]))
""")
    assert facts == [[], True, True, False]


def test_messages_without_the_package_around_them():
    facts = run("""
import json, sys
hook = sys.excepthook
from rpc.api import messages
robot = messages.robot()
name = messages.common().ResourceName(name="a")
facts = {
    "hook": sys.excepthook is hook,
    "asyncio": "asyncio" in sys.modules,
    "hash": type(name).__str__ is type(robot.Session()).__str__,
}
print(json.dumps(facts))
""")
    assert facts == {"hook": True, "asyncio": False, "hash": True}


def test_the_package_can_be_imported_completely():
    facts = run("""
import json, sys
from rpc.api import messages
messages.common()
hook = sys.excepthook
import viam
from viam.robot.client import RobotClient
version = viam.__version__
from viam.gen.common.v1 import common_pb2
print(json.dumps([bool(version), RobotClient.__name__, common_pb2 is messages.common(), sys.excepthook is hook]))
""")
    assert facts == [True, "RobotClient", True, True]


@pytest.mark.parametrize(
    "statement",
    [
        "from viam.components.arm import Arm",
        "import viam.proto.common",
        "import viam.logging",
        "from viam.proto import common",
        "from viam import logging",
        "from viam.media.video import ViamImage",
        "from viam.robot.client import RobotClient",
    ],
)
def test_the_package_is_whole_whatever_is_imported_first(statement):
    """The package makes resource names hashable, and its client relies on that."""
    facts = run(f"""
import json, sys
from rpc.api import messages
messages.common()
finders = len(sys.meta_path)
{statement}
import viam.proto.common
from viam.robot.client import RobotClient
name = messages.common().ResourceName(name="a")
same = all(
    sys.modules[name].__spec__.name == name and getattr(sys.modules[name.rpartition(".")[0]], name.rpartition(".")[2])
    is sys.modules[name]
    for name in sys.modules if name.startswith("viam.") and sys.modules[name] is not None
)
print(json.dumps([hash(name) == hash(str(name)), same, viam.proto.common.ResourceName is type(name),
                  finders - len(sys.meta_path)]))
""")
    assert facts == [True, True, True, 1]


def test_the_package_may_be_there_already():
    facts = run("""
import json
import viam
from rpc.api import messages
print(json.dumps([messages.common().__name__, viam.__version__ != ""]))
""")
    assert facts == ["viam.gen.common.v1.common_pb2", True]


class Target:
    def call(self, request):
        raise NotImplementedError


def test_names_for_reflection_and_registered_handlers():
    router = ApiRouter(Target(), bases={API("rdk", "component", "motor"): Motor})
    handler = object()
    router.register({"/a.B/C": handler})
    assert router.get("/a.B/C") is handler
    assert router.service_names() == ["a.B", "viam.component.motor.v1.MotorService"]
    assert router.get("/viam.component.motor.v1.MotorService/SetRPM") is not None
    assert router.service_names() == ["a.B", "viam.component.motor.v1.MotorService"]


@pytest.mark.parametrize(
    "path", ["", "/", "SetPower", "/viam.component.motor.v1.MotorService/", "/viam.component.arm.v1.ArmService/Stop"]
)
def test_paths_that_are_not_served(path):
    router = ApiRouter(Target(), bases={API("rdk", "component", "motor"): Motor})
    assert router.get(path) is None


def test_a_class_that_does_not_fit_spoils_nothing_else():
    class Wrong:
        async def stop(self) -> None: ...

    motor, arm = API("rdk", "component", "motor"), API("rdk", "component", "arm")
    router = ApiRouter(Target(), bases={motor: Motor, arm: Wrong, API("rdk", "component", "servo"): "no.such:Thing"})
    assert router.get("/viam.component.arm.v1.ArmService/Stop") is None
    assert router.get("/viam.component.servo.v1.ServoService/Stop") is None
    assert router.get("/viam.component.motor.v1.MotorService/Stop") is not None


def test_apis_without_a_published_service_are_left_out():
    router = ApiRouter(Target(), bases={**BASES, API("acme", "component", "x"): "no.such:Thing"})
    assert len(router.service_names()) == len(BASES)
