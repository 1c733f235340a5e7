"""viam.app.v1.AppService: what clients and pages arrange. Which role each call needs is one table."""

from __future__ import annotations

from typing import Final

from cloud.access import Of, Role
from cloud.services.base import Rule, guarded
from cloud.services.configurations import Configurations
from cloud.services.keys import Keys
from cloud.services.logs import Logs
from cloud.services.machines import Machines
from cloud.services.organizations import Organizations


def _owner(of: Of, field: str) -> Rule:
    return Rule(Role.OWNER, of, field)


def _operator(of: Of, field: str) -> Rule:
    return Rule(Role.OPERATOR, of, field)


SELF: Final = Rule()
"""Whoever is signed in: the method shows only what the caller may see, or asks `require` itself."""

RULES: Final = {
    "list_organizations": SELF,
    "get_organization": SELF,
    "create_organization": SELF,
    "get_organization_namespace_availability": SELF,
    "update_organization": _owner(Of.ORGANIZATION, "organization_id"),
    "delete_organization": _owner(Of.ORGANIZATION, "organization_id"),
    "list_organization_members": _operator(Of.ORGANIZATION, "organization_id"),
    "get_organization_metadata": _operator(Of.ORGANIZATION, "organization_id"),
    "update_organization_metadata": _owner(Of.ORGANIZATION, "organization_id"),
    "list_locations": SELF,
    "get_location": _operator(Of.LOCATION, "location_id"),
    "create_location": _owner(Of.ORGANIZATION, "organization_id"),
    "update_location": _owner(Of.LOCATION, "location_id"),
    "delete_location": _owner(Of.LOCATION, "location_id"),
    "get_location_metadata": _operator(Of.LOCATION, "location_id"),
    "update_location_metadata": _owner(Of.LOCATION, "location_id"),
    "list_robots": _operator(Of.LOCATION, "location_id"),
    "list_robots_for_locations": SELF,
    "list_robots_for_org": _operator(Of.ORGANIZATION, "org_id"),
    "get_robot": _operator(Of.ROBOT, "id"),
    "new_robot": _owner(Of.LOCATION, "location"),
    "update_robot": _owner(Of.ROBOT, "id"),
    "delete_robot": _owner(Of.ROBOT, "id"),
    "get_robot_metadata": _operator(Of.ROBOT, "id"),
    "update_robot_metadata": _owner(Of.ROBOT, "id"),
    "get_robot_parts": _operator(Of.ROBOT, "robot_id"),
    "get_robot_part": _operator(Of.PART, "id"),
    "new_robot_part": _owner(Of.ROBOT, "robot_id"),
    "delete_robot_part": _owner(Of.PART, "part_id"),
    "mark_part_as_main": _owner(Of.PART, "part_id"),
    "mark_part_for_restart": _operator(Of.PART, "part_id"),
    "create_robot_part_secret": _owner(Of.PART, "part_id"),
    "delete_robot_part_secret": _owner(Of.PART, "part_id"),
    "get_robot_part_metadata": _operator(Of.PART, "id"),
    "update_robot_part_metadata": _owner(Of.PART, "id"),
    "list_machine_summaries": SELF,
    "update_robot_part": _owner(Of.PART, "id"),
    "set_config_property": _owner(Of.PART, "robot_part_id"),
    "get_robot_part_history": _operator(Of.PART, "id"),
    "get_robot_part_logs": _operator(Of.PART, "id"),
    "tail_robot_part_logs": _operator(Of.PART, "id"),
    "create_key": SELF,
    "create_key_from_existing_key_authorizations": _owner(Of.KEY, "id"),
    "list_keys": _owner(Of.ORGANIZATION, "org_id"),
    "get_robot_api_keys": _owner(Of.ROBOT, "robot_id"),
    "rename_key": _owner(Of.KEY, "id"),
    "rotate_key": _owner(Of.KEY, "id"),
    "delete_key": _owner(Of.KEY, "id"),
    "add_role": SELF,
    "remove_role": SELF,
    "change_role": SELF,
    "list_authorizations": _owner(Of.ORGANIZATION, "organization_id"),
    "check_permissions": SELF,
}


@guarded(RULES)
class AppService(Organizations, Machines, Configurations, Logs, Keys):
    """One call. What is not here is UNIMPLEMENTED."""
