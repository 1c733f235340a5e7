"""Every request gets an answer that the protocol allows, never an internal error."""

from __future__ import annotations

from random import Random
from typing import Any, Final

import pytest
from google.protobuf.message import Message
from grpclib.const import Cardinality
from grpclib.exceptions import GRPCError

from cloud.server.memory import MemoryCloud
from cloud.services.agents import agent_requests
from cloud.services.target import SERVICES
from cloud.services.training import following
from rpc.access.credential_types import API_KEY
from rpc.api.memory import MemoryChannel
from rpc.api.methods import Method, methods_of
from rpc.api.table import SERVICES as PUBLISHED
from rpc.carrier import Identity
from tests.unit.cloud.requests import Filler

ROUNDS: Final = 6  # of every call, for each seed
DELETING: Final = 3  # calls that delete take part from this round on
LAST: Final = {"DeleteOrganization"}  # leaves nothing to test
ENDLESS: Final = {"TailRobotPartLogs"}
SETS: Final = "viam.app.dataset.v1.DatasetService"
MADE: Final = {  # kinds of new objects by method, with the field of the answer that has the id
    "NewRobot": ("robot", "id"),
    "NewRobotPart": ("part", "part_id"),
    "CreateDataset": ("dataset", "id"),
    "CreateKey": ("key", "id"),
    "CreateModule": ("item", "module_id"),
    "AddBoundingBoxToImageByID": ("box", "bbox_id"),
    "DataCaptureUpload": ("file", "binary_data_id"),
    "FileUpload": ("file", "binary_data_id"),
    "StreamingDataCaptureUpload": ("file", "binary_data_id"),
}
CALLS: Final = [
    method
    for service, cls in SERVICES.items()
    for name, method in methods_of(PUBLISHED[service]).items()
    if hasattr(cls, name) and method.path.rpartition("/")[2] not in LAST | ENDLESS
]


async def ask(channel: MemoryChannel, method: Method, requests: list[Message]) -> Any:
    """Return the last reply of a call. Internal errors are raised with their original exception."""
    opened = channel.request(method.path, Cardinality.UNARY_UNARY, method.request_class, method.reply_class)
    async with opened as call:
        for request in requests:
            await call.send_message(request)
        await call.end()
        last = None
        while (reply := await call.recv_message()) is not None:
            last = reply
            if not method.server_streaming:
                break
        return last


async def known_ids(cloud: MemoryCloud) -> dict[str, list[str]]:
    """Create one object of each kind and return their ids."""
    owner = cloud.first.organization
    await cloud.app("update_organization", organization_id=owner, public_namespace="acme")
    robot = await cloud.app("new_robot", name="rover", location=cloud.first.location)
    grant = {"authorization_id": "organization_operator", "resource_type": "organization", "resource_id": owner}
    key = await cloud.app("create_key", authorizations=[grant], name="guard")
    fragment = await cloud.app("create_fragment", organization_id=owner, name="drive")
    await cloud.app("create_module", organization_id=owner, name="smooth")
    return {
        "organization": [owner],
        "location": [cloud.first.location],
        "robot": [robot],
        "part": [(await cloud.app("get_robot_parts", robot_id=robot))[0]["id"]],
        "key": [key["id"]],
        "fragment": [fragment["id"]],
        "item": ["acme:smooth"],
        "dataset": [await cloud.client().call(SETS, "", "create_dataset", name="d", organization_id=owner)],
        "file": [],
        "box": [],
    }


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let calls that wait for news return soon."""
    monkeypatch.setattr(agent_requests, "REQUEST_WAIT", 0.1)
    monkeypatch.setattr(following, "MAX_WAIT", 0.1)


@pytest.mark.parametrize(
    ("database", "seed"), [*(("sqlite", seed) for seed in range(3)), ("postgresql", 3)], indirect=["database"]
)
async def test_no_request_causes_an_internal_error(cloud: MemoryCloud, seed: int) -> None:
    random, accepted = Random(seed), await known_ids(cloud)
    filler = Filler(random, accepted)
    channel = MemoryChannel(cloud.router, identity=Identity(cloud.first.id, API_KEY))
    answered = 0
    for number in range(ROUNDS):
        calls = [call for call in CALLS if number >= DELETING or "Delete" not in call.path]
        random.shuffle(calls)
        for method in calls:
            count = random.randint(1, 3) if method.client_streaming else 1
            requests = [filler.message(method.path, method.request_class) for _ in range(count)]
            try:
                reply = await ask(channel, method, requests)
            except GRPCError:
                continue
            except BaseException as error:
                error.add_note(f"{method.path} was asked {requests}"[:4000])
                raise
            answered += 1
            kind, field = MADE.get(method.path.rpartition("/")[2], ("", ""))
            if kind and getattr(reply, field):
                accepted[kind].append(getattr(reply, field))
    assert answered > 100, "most requests were refused for their form: they reach nothing"
