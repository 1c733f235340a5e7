"""Every method of every API passes non-default values of every field through its handler in both directions."""

import importlib.util
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from grpclib.const import Cardinality

from engine.apis import BASES, base_of
from rpc.api.convert.decode import field_reader, message_reader
from rpc.api.convert.encode import field_filler
from rpc.api.convert.hints import signature_of
from rpc.api.memory import MemoryChannel
from rpc.api.methods import methods_of
from rpc.api.server.check import implementation_problems
from rpc.api.server.router import ApiRouter
from rpc.api.table import APIS, STREAMED


def load_samples():
    spec = importlib.util.spec_from_file_location("samples", Path(__file__).with_name("samples.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Samples


# Not represented in the Python classes: goal clouds of poses, and fields of a discovery that `api` and `model` repeat.
LEFT_OUT = frozenset(
    {
        "viam.common.v1.PoseInFrame.goal_cloud",
        *(f"viam.app.v1.ComponentConfig.{name}" for name in ("namespace", "type", "frame")),
        *(f"viam.app.v1.ComponentConfig.{name}" for name in ("service_configs", "log_configuration")),
    }
)

METHODS = [
    pytest.param(api, name, id=f"{api.type}-{api.subtype}-{name}") for api in BASES for name in methods_of(APIS[api])
]


class Dummy:
    """Answers every method with `result` and records the arguments."""

    def __init__(self, method, result):
        self.arguments = None
        self.items = []

        async def unary(**arguments):
            self.arguments = arguments
            if method.streamed:
                self.items = [item async for item in arguments.pop(method.streamed.argument)]
            return result

        async def streaming(**arguments):
            self.arguments = arguments
            if method.streamed:
                self.items = [item async for item in arguments.pop(method.streamed.argument)]
            yield result
            yield result

        setattr(self, method.name, streaming if method.server_streaming else unary)


class Target:
    def __init__(self, result):
        self.result = result
        self.calls = []

    @asynccontextmanager
    async def call(self, request):
        self.calls.append(request)
        request.reply_metadata["opid"] = "one"
        yield self.result


@pytest.mark.parametrize("api", [pytest.param(api, id=str(api)) for api in BASES])
def test_base_class_fits_its_api(api):
    base = base_of(api)
    assert api == base.API
    for method in methods_of(APIS[api]).values():
        assert implementation_problems(method, base) == []


@pytest.mark.parametrize(("api", "name"), METHODS)
async def test_every_field_there_and_back(api, name):
    method = methods_of(APIS[api])[name]
    base = base_of(api)
    samples = load_samples()(LEFT_OUT)
    reply = samples.message(method.reply)
    hint = signature_of(getattr(base, name)).result
    fields = method.reply.fields
    if not fields:
        result = None
    elif method.is_whole(hint):
        result = message_reader(method.reply, hint)(reply)
    else:
        result = field_reader(fields[0], hint)(reply)

    dummy = Dummy(method, result)
    target = Target(dummy)
    router = ApiRouter(target, bases={api: BASES[api]})
    request, more = sample_requests(method, samples)
    cardinality = Cardinality((method.client_streaming, method.server_streaming))
    async with MemoryChannel(router).request(
        method.path, cardinality, method.request_class, method.reply_class, metadata={"viam-sid": "s"}
    ) as stream:
        await stream.send_message(request, end=not more)
        for index, item in enumerate(more):
            await stream.send_message(item, end=index == len(more) - 1)
        replies = []
        while (received := await stream.recv_message()) is not None:
            replies.append(received)
        assert stream.initial_metadata == {"opid": "one"}

    assert replies == [reply] * (2 if method.server_streaming else 1)
    (info,) = target.calls
    assert (info.api, info.method, info.rpc) == (api, name, method.path)
    assert info.name == "the-name"
    assert info.monitored == method.monitored
    assert info.streaming == (method.client_streaming or method.server_streaming)
    assert info.metadata["viam-sid"] == "s"
    check_arguments(method, dummy, request, more)


def sample_requests(method, samples):
    streamed = STREAMED.get(method.path[1:].replace("/", "."))
    if streamed is None:
        request = samples.message(method.request)
        setattr(request, method.name_field, "the-name")
        return request, []
    names = [f.name for f in method.request.fields if f.name != streamed.item]
    request = samples.message(method.request, only=names)
    holder = request if method.name_field in method.request.fields_by_name else getattr(request, streamed.init)
    setattr(holder, method.name_field, "the-name")
    more = [samples.message(method.request, only=[streamed.item]) for _ in range(3)]
    return request, more


def check_arguments(method, dummy, request, more):
    assert dummy.arguments.keys() == method.arguments.keys()
    again = method.request_class()
    part = again
    if method.streamed is not None and method.streamed.init:
        part = getattr(again, method.streamed.init)
    for key, value in dummy.arguments.items():
        field = method.arguments[key]
        field_filler(field)(again if field.containing_type is method.request else part, value)
    setattr(again if method.name_field in method.request.fields_by_name else part, method.name_field, "the-name")
    assert again == request
    for item, sent in zip(dummy.items, more, strict=True):
        refilled = method.request_class()
        field_filler(method.item)(refilled, item)
        assert refilled == sent


def test_monitored_methods_are_those_that_move_something():
    monitored = {
        f"{api.subtype}.{method.name}" for api in APIS for method in methods_of(APIS[api]).values() if method.monitored
    }
    assert monitored == {
        "arm.move_to_position",
        "arm.move_to_joint_positions",
        "arm.move_through_joint_positions",
        "arm.move_through_joint_positions_streamed",
        "base.move_straight",
        "base.set_power",
        "base.set_velocity",
        "base.spin",
        "button.push",
        "gantry.move_to_position",
        "gripper.go_to_inputs",
        "gripper.grab",
        "gripper.open",
        "input_controller.trigger_event",
        "motor.go_for",
        "motor.go_to",
        "motor.set_power",
        "motor.set_rpm",
        "servo.move",
        "switch.set_position",
    }
