"""viam.app.v1.AppService: what clients and pages arrange. Which role each call needs is one table."""

from __future__ import annotations

from typing import Final

from cloud.access import Of
from cloud.services import deprecation, finding, fragments, people, places, registry
from cloud.services.base import SELF, guarded, home_owner, operator, owner
from cloud.services.configurations import Configurations
from cloud.services.keys import Keys
from cloud.services.logs import Logs
from cloud.services.machines import Machines
from cloud.services.organizations import Organizations

RULES: Final = {
    "list_organizations": SELF,
    "get_organization": SELF,
    "get_organization_namespace_availability": SELF,
    "update_organization": owner(Of.ORGANIZATION, "organization_id"),
    "delete_organization": owner(Of.ORGANIZATION, "organization_id"),
    "update_organization_namespace": owner(Of.ORGANIZATION, "organization_id"),
    "get_organization_metadata": operator(Of.ORGANIZATION, "organization_id"),
    "update_organization_metadata": owner(Of.ORGANIZATION, "organization_id"),
    "list_locations": SELF,
    "get_location": operator(Of.LOCATION, "location_id"),
    "create_location": owner(Of.ORGANIZATION, "organization_id"),
    "update_location": home_owner(Of.LOCATION, "location_id"),
    "delete_location": home_owner(Of.LOCATION, "location_id"),
    "get_location_metadata": operator(Of.LOCATION, "location_id"),
    "update_location_metadata": owner(Of.LOCATION, "location_id"),
    "list_robots": operator(Of.LOCATION, "location_id"),
    "list_robots_for_locations": SELF,
    "list_robots_for_org": operator(Of.ORGANIZATION, "org_id"),
    "get_robot": operator(Of.ROBOT, "id"),
    "new_robot": home_owner(Of.LOCATION, "location"),
    "update_robot": owner(Of.ROBOT, "id"),
    "delete_robot": home_owner(Of.ROBOT, "id"),
    "get_robot_metadata": operator(Of.ROBOT, "id"),
    "update_robot_metadata": owner(Of.ROBOT, "id"),
    "get_robot_parts": operator(Of.ROBOT, "robot_id"),
    "get_robot_part": operator(Of.PART, "id"),
    "new_robot_part": home_owner(Of.ROBOT, "robot_id"),
    "delete_robot_part": home_owner(Of.PART, "part_id"),
    "mark_part_as_main": owner(Of.PART, "part_id"),
    "mark_part_for_restart": operator(Of.PART, "part_id"),
    "create_robot_part_secret": home_owner(Of.PART, "part_id"),
    "delete_robot_part_secret": home_owner(Of.PART, "part_id"),
    "get_robot_part_metadata": operator(Of.PART, "id"),
    "update_robot_part_metadata": owner(Of.PART, "id"),
    "list_machine_summaries": SELF,
    "update_robot_part": owner(Of.PART, "id"),
    "set_config_property": owner(Of.PART, "robot_part_id"),
    "get_robot_part_history": operator(Of.PART, "id"),
    "get_robot_part_logs": operator(Of.PART, "id"),
    "tail_robot_part_logs": operator(Of.PART, "id"),
    "create_key": SELF,
    "create_key_from_existing_key_authorizations": owner(Of.KEY, "id"),
    "list_keys": owner(Of.ORGANIZATION, "org_id"),
    "get_robot_api_keys": owner(Of.ROBOT, "robot_id"),
    "rename_key": owner(Of.KEY, "id"),
    "rotate_key": owner(Of.KEY, "id"),
    "delete_key": owner(Of.KEY, "id"),
    "add_role": SELF,
    "remove_role": SELF,
    "change_role": SELF,
    "list_authorizations": owner(Of.ORGANIZATION, "organization_id"),
    "check_permissions": SELF,
    **finding.RULES,
    **fragments.RULES,
    **registry.RULES,
    **deprecation.RULES,
    **people.RULES,
    **places.RULES,
}


@guarded(RULES)
class AppService(
    Organizations,
    Machines,
    Configurations,
    Logs,
    Keys,
    finding.Finding,
    fragments.Fragments,
    registry.Registry,
    deprecation.Deprecations,
    people.People,
    places.Places,
):
    """One call. What is not here is UNIMPLEMENTED."""
