"""What an operator may not do at a machine, in each way to call it: shells, tunnels and copies of files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError

from engine.options import Options
from rpc.carrier import Identity
from runtime.server.endpoint import Endpoint
from runtime.server.memory import open_machine
from runtime.server.port.gate import GUARDED, Gate
from schema.document.machine import decode_document
from uplink.document import document_of

KEYS = {"handlers": [{"type": "api-key", "config": {"owner": "1", "operator": "2"}}]}


class Stream:
    def __init__(self, identity: Identity | None) -> None:
        self.identity = identity


def auth(**more: Any) -> Any:
    document = decode_document(json.dumps({"auth": {**KEYS, "operators": ["operator"], **more}}).encode()).document
    assert document is not None
    return document.auth


async def called(gate: Gate, method: str, identity: Identity | None) -> bool:
    """Return whether a caller may call a method."""
    calls: list[Any] = []

    async def handle(stream: Any) -> None:
        calls.append(stream)

    handler = gate.for_owners(method, Handler(handle, Cardinality.UNARY_UNARY, None, None))
    try:
        await handler.func(Stream(identity))
    except GRPCError as error:
        return not (error.status is Status.PERMISSION_DENIED and "operator_shells" in str(error.message))
    return bool(calls)


@pytest.mark.parametrize("method", sorted(GUARDED))
@pytest.mark.parametrize(
    ("identity", "allowed"),
    [
        (Identity("owner", "api-key"), True),
        (Identity("operator", "api-key"), False),
        (Identity("operator", "robot-secret"), True),  # another credential with the same name
        (None, True),  # a module, or a machine without keys, which the gate refuses before
    ],
)
async def test_operators_open_no_shells(method: str, identity: Identity | None, allowed: bool) -> None:
    gate = Gate(Options(config=Path("m.json")), Endpoint())
    gate.operators = frozenset(auth().operators)
    assert await called(gate, method, identity) is allowed


async def test_every_guarded_method_of_the_router_is_checked() -> None:
    async with open_machine({"services": [{"name": "sh", "api": "rdk:service:shell", "model": "builtin"}]}) as memory:
        memory.serving.gate.operators = frozenset({"operator"})
        for method in GUARDED:
            handler = memory.serving.router.get(method)
            assert handler is not None
            with pytest.raises(GRPCError, match="role owner"):
                await handler.func(Stream(Identity("operator", "api-key")))


def test_a_configuration_may_allow_it() -> None:
    assert auth(operator_shells=True).operator_shells
    assert not auth().operator_shells


def test_the_operators_of_the_cloud_are_added() -> None:
    message = {"document": {"auth": {"operators": ["mine"]}}, "keys": {"k": "sha256:0"}, "operators": ["k"]}
    own = {"cloud": {"id": "part"}}
    assert json.loads(document_of(message, own))["auth"]["operators"] == ["mine", "k"]
    del message["operators"]  # a cloud of before
    assert json.loads(document_of(message, own))["auth"]["operators"] == ["mine"]
