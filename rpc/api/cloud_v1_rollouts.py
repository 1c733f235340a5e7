"""Messages and methods of RolloutService, a part of the tables of `cloud_v1`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rpc.api.well_known import TIME

_PLAN: Final = ("string organization_id = 1", "RolloutPlan plan = 2")

ROLLOUT_MESSAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "RolloutStage": ("double percent = 1", "repeated string tags = 2"),
    "RolloutPlan": (
        "string kind = 1",
        "string subject = 2",
        "string channel = 3",
        "string revision = 4",
        "repeated RolloutStage stages = 5",
        "repeated string tags = 6",
        "repeated string location_ids = 7",
        "optional int32 stop_after = 8",
        "optional int32 soak_seconds = 9",
        "bool by_hand = 10",
    ),
    "PreviewStagedRolloutRequest": _PLAN,
    "PreviewStage": ("string stage = 1", "int32 machines = 2"),
    "PreviewStagedRolloutResponse": (
        "string called = 1",
        "string revision_from = 2",
        "string revision_to = 3",
        "repeated PreviewStage stages = 4",
        "int32 selected = 5",
        "int32 concerned = 6",
        "int32 elsewhere = 7",
    ),
    "StartStagedRolloutRequest": (*_PLAN, "optional int32 expected = 3"),
    "StartStagedRolloutResponse": ("string id = 1",),
    "StagedStage": (
        "string stage = 1",
        "string state = 2",
        "int32 machines = 3",
        "int32 waiting = 4",
        "int32 updated = 5",
        "int32 healthy = 6",
        "int32 failed = 7",
        "int32 offline = 8",
        "int32 others = 9",
    ),
    "StagedRollout": (
        "string id = 1",
        "string kind = 2",
        "string subject = 3",
        "string channel = 4",
        "string called = 5",
        "string revision_from = 6",
        "string revision_to = 7",
        "RolloutPlan plan = 8",
        "string state = 9",
        "int32 stage = 10",
        "string reason = 11",
        "string next = 12",
        f"{TIME} next_at = 13",
        "int32 failures = 14",
        "int32 total = 15",
        f"{TIME} created = 16",
        f"{TIME} changed = 17",
        f"{TIME} ended = 18",
        "repeated StagedStage stages = 19",
        "int32 returning = 20",
        "int32 returned = 21",
        "string started_by = 22",
        "string changed_by = 23",
    ),
    "ListStagedRolloutsRequest": ("string organization_id = 1",),
    "ListStagedRolloutsResponse": ("repeated StagedRollout rollouts = 1",),
    "StagedRolloutEvent": (
        f"{TIME} happened = 1",
        "string kind = 2",
        "string detail = 3",
        "string author = 4",
    ),
    "GetStagedRolloutRequest": ("string organization_id = 1", "string id = 2"),
    "GetStagedRolloutResponse": ("StagedRollout rollout = 1", "repeated StagedRolloutEvent events = 2"),
    "WaitForStagedRolloutRequest": ("string organization_id = 1", "string id = 2", "string seen = 3"),
    "WaitForStagedRolloutResponse": ("StagedRollout rollout = 1", "string seen = 2"),
    "StagedMachine": (
        "string part_id = 1",
        "string machine_id = 2",
        "string name = 3",
        "int32 stage = 4",
        "string state = 5",
        "string reason = 6",
        f"{TIME} taken = 7",
        f"{TIME} changed = 8",
    ),
    "ListStagedMachinesRequest": (
        "string organization_id = 1",
        "string id = 2",
        "string state = 3",
        "string page_token = 4",
        "int32 limit = 5",
    ),
    "ListStagedMachinesResponse": ("repeated StagedMachine machines = 1", "string next_page_token = 2"),
    "ChangeStagedRolloutRequest": ("string organization_id = 1", "string id = 2", "string action = 3"),
    "ChangeStagedRolloutResponse": ("StagedRollout rollout = 1",),
    "UpdateFragmentForRolloutRequest": (
        "string fragment_id = 1",
        "string fragment_config_json = 2",
        f"{TIME} last_known_update = 3",
    ),
    "UpdateFragmentForRolloutResponse": ("string revision = 1",),
}
"""Fields of each message, as in a .proto file."""

ROLLOUT_METHODS: Final = (
    "PreviewStagedRollout",
    "StartStagedRollout",
    "ListStagedRollouts",
    "GetStagedRollout",
    "WaitForStagedRollout",
    "ListStagedMachines",
    "ChangeStagedRollout",
    "UpdateFragmentForRollout",
)
