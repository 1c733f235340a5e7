"""Permissions of the calls for rollouts in stages, a part of the table in `call_rules`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.rules import AccessRule, operator, owner

ROLLOUTS: Final[Mapping[str, AccessRule]] = {
    "preview_staged_rollout": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "start_staged_rollout": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "list_staged_rollouts": operator(ObjectKind.ORGANIZATION, "organization_id"),
    "get_staged_rollout": operator(ObjectKind.ORGANIZATION, "organization_id"),
    "list_staged_machines": operator(ObjectKind.ORGANIZATION, "organization_id"),
    "change_staged_rollout": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "update_fragment_for_rollout": owner(ObjectKind.FRAGMENT, "fragment_id"),
}
