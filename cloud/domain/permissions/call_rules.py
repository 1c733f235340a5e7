"""Permissions of every call, page, WebSocket and HTTP route of machine-cloud, in one table.

These entries guard the services and the routes, docs/reference/security.md is generated from them, and a test sends
every request as every kind of caller and compares the results. A method or route without an entry raises TypeError when
the cloud starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cloud.domain.permissions.access import ObjectKind, Role
from cloud.domain.permissions.rollout_rules import ROLLOUTS
from cloud.domain.permissions.rules import (
    AccessRule,
    home_operator,
    home_owner,
    machine,
    operator,
    owner,
    public,
    signed_in,
)
from cloud.values.author import LOCATION, Author
from schema import ErrorKind, MachineError

ROLE_ANYWHERE: Final = signed_in("those in which the caller has a role")
READABLE: Final = signed_in("public ones, and those of the caller's organization")
FILTERED: Final = signed_in("data of resources at which the caller has a role")
FILTERED_OR_JOB: Final = signed_in(
    "data of resources at which the caller has a role; with the key of a running training script, those of its dataset"
)
OWNED: Final = signed_in("data of resources that the caller owns")
GIVES: Final = signed_in("roles at resources that the caller owns")
OWN_MARKS: Final = signed_in("the caller's own marks")
ITSELF_UPLOADS: Final = AccessRule(Role.MACHINE, note="of the part that the metadata names; checked by the method")

APP: Final[Mapping[str, AccessRule]] = {
    "list_organizations": ROLE_ANYWHERE,
    "get_organization": ROLE_ANYWHERE,
    "get_organization_namespace_availability": signed_in("whether a namespace is available"),
    "update_organization": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "delete_organization": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "update_organization_namespace": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "get_organization_metadata": operator(ObjectKind.ORGANIZATION, "organization_id"),
    "update_organization_metadata": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "list_locations": ROLE_ANYWHERE,
    "get_location": operator(ObjectKind.LOCATION, "location_id"),
    "create_location": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "update_location": home_owner(ObjectKind.LOCATION, "location_id"),
    "delete_location": home_owner(ObjectKind.LOCATION, "location_id"),
    "get_location_metadata": operator(ObjectKind.LOCATION, "location_id"),
    "update_location_metadata": owner(ObjectKind.LOCATION, "location_id"),
    "list_robots": operator(ObjectKind.LOCATION, "location_id"),
    "list_robots_for_locations": signed_in("as ListRobots, for each location"),
    "list_robots_for_org": operator(ObjectKind.ORGANIZATION, "org_id"),
    "get_robot": operator(ObjectKind.ROBOT, "id"),
    "new_robot": home_owner(ObjectKind.LOCATION, "location"),
    "update_robot": owner(ObjectKind.ROBOT, "id"),
    "delete_robot": home_owner(ObjectKind.ROBOT, "id"),
    "get_robot_metadata": operator(ObjectKind.ROBOT, "id"),
    "update_robot_metadata": owner(ObjectKind.ROBOT, "id"),
    "get_robot_parts": operator(ObjectKind.ROBOT, "robot_id"),
    "get_robot_part": operator(ObjectKind.PART, "id", inside=True),
    "new_robot_part": home_owner(ObjectKind.ROBOT, "robot_id"),
    "delete_robot_part": home_owner(ObjectKind.PART, "part_id"),
    "mark_part_as_main": owner(ObjectKind.PART, "part_id"),
    "mark_part_for_restart": operator(ObjectKind.PART, "part_id"),
    "create_robot_part_secret": home_owner(ObjectKind.PART, "part_id"),
    "delete_robot_part_secret": home_owner(ObjectKind.PART, "part_id"),
    "get_robot_part_metadata": operator(ObjectKind.PART, "id"),
    "update_robot_part_metadata": owner(ObjectKind.PART, "id"),
    "list_machine_summaries": ROLE_ANYWHERE,
    "update_robot_part": owner(ObjectKind.PART, "id"),
    "set_config_property": owner(ObjectKind.PART, "robot_part_id"),
    "get_robot_part_history": operator(ObjectKind.PART, "id"),
    "get_robot_part_logs": operator(ObjectKind.PART, "id"),
    "tail_robot_part_logs": operator(ObjectKind.PART, "id"),
    "create_key": GIVES,
    "create_key_from_existing_key_authorizations": owner(ObjectKind.KEY, "id"),
    "list_keys": owner(ObjectKind.ORGANIZATION, "org_id"),
    "get_robot_api_keys": owner(ObjectKind.ROBOT, "robot_id"),
    "rename_key": owner(ObjectKind.KEY, "id"),
    "rotate_key": owner(ObjectKind.KEY, "id"),
    "delete_key": owner(ObjectKind.KEY, "id"),
    "add_role": GIVES,
    "remove_role": GIVES,
    "change_role": GIVES,
    "list_authorizations": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "check_permissions": signed_in("what the caller may do"),
    # finding
    "get_robot_part_by_name_and_location": operator(ObjectKind.LOCATION, "location_id"),
    "get_organizations_with_access_to_location": operator(ObjectKind.LOCATION, "location_id"),
    "add_favorite_machine": operator(ObjectKind.ROBOT, "machine_id"),
    "remove_favorite_machine": OWN_MARKS,
    "list_favorite_machines": OWN_MARKS,
    # fragments
    "list_fragments": operator(ObjectKind.ORGANIZATION, "organization_id"),
    "get_fragment": READABLE,
    "create_fragment": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "update_fragment": owner(ObjectKind.FRAGMENT, "id"),
    "delete_fragment": owner(ObjectKind.FRAGMENT, "id"),
    "get_fragment_history": operator(ObjectKind.FRAGMENT, "id"),
    "get_fragment_usage": operator(ObjectKind.FRAGMENT, "fragment_id"),
    "set_fragment_tag": owner(ObjectKind.FRAGMENT, "fragment_id"),
    "delete_fragment_tag": owner(ObjectKind.FRAGMENT, "fragment_id"),
    "list_nested_fragments": READABLE,
    "list_machine_fragments": operator(ObjectKind.ROBOT, "machine_id"),
    # registry
    "get_registry_item": READABLE,
    "create_registry_item": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "update_registry_item": owner(ObjectKind.ITEM, "item_id"),
    "list_registry_items": READABLE,
    "delete_registry_item": owner(ObjectKind.ITEM, "item_id"),
    "rename_registry_item": owner(ObjectKind.ITEM, "item_id"),
    "create_module": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "update_module": owner(ObjectKind.ITEM, "module_id"),
    "upload_module_file": owner(ObjectKind.ITEM, "module_id"),
    "get_module": READABLE,
    "list_modules": READABLE,
    # deprecation
    "deprecate_registry_item": owner(ObjectKind.ITEM, "item_id"),
    "undeprecate_registry_item": owner(ObjectKind.ITEM, "item_id"),
    "deprecate_registry_item_version": owner(ObjectKind.ITEM, "item_id"),
    "undeprecate_registry_item_version": owner(ObjectKind.ITEM, "item_id"),
    "list_deprecated_versions": READABLE,
    # people
    "list_organization_members": operator(ObjectKind.ORGANIZATION, "organization_id"),
    "create_organization_invite": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "update_organization_invite_authorizations": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "resend_organization_invite": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "delete_organization_invite": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "delete_organization_member": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "get_user_id_by_email": signed_in("members of the caller's organization"),
    "list_organizations_by_user": signed_in("the caller's organization"),
    "search_organizations": ROLE_ANYWHERE,
    # places
    "share_location": home_owner(ObjectKind.LOCATION, "location_id"),
    "unshare_location": home_owner(ObjectKind.LOCATION, "location_id"),
    "location_auth": home_owner(ObjectKind.LOCATION, "location_id"),
    "create_location_secret": home_owner(ObjectKind.LOCATION, "location_id"),
    "delete_location_secret": home_owner(ObjectKind.LOCATION, "location_id"),
}

ROBOT: Final[Mapping[str, AccessRule]] = {
    "config": machine("id", inside=True),
    "certificate": machine("id"),
    "log": machine("id", inside=True),
    "needs_restart": machine("id", inside=True),
}

AGENT: Final[Mapping[str, AccessRule]] = {"device_agent_config": machine("id")}

DATASYNC: Final[Mapping[str, AccessRule]] = {
    "data_capture_upload": ITSELF_UPLOADS,
    "file_upload": machine("part_id"),
    "streaming_data_capture_upload": ITSELF_UPLOADS,
}

DATA: Final[Mapping[str, AccessRule]] = {
    "tabular_data_by_filter": FILTERED,
    "tabular_data_by_sql": operator(ObjectKind.ORGANIZATION, "organization_id"),
    "tabular_data_by_mql": operator(ObjectKind.ORGANIZATION, "organization_id"),
    "create_saved_query": operator(ObjectKind.ORGANIZATION, "organization_id"),
    "update_saved_query": operator(ObjectKind.QUERY, "id"),
    "get_saved_query": operator(ObjectKind.QUERY, "id", inside=True),
    "list_saved_queries": operator(ObjectKind.ORGANIZATION, "organization_id", inside=True),
    "tabular_answer": operator(ObjectKind.ORGANIZATION, "organization_id"),
    "tabular_fields": operator(ObjectKind.ORGANIZATION, "organization_id"),
    "list_sql_queries": operator(ObjectKind.ORGANIZATION, "organization_id", inside=True),
    "get_sql_query": operator(ObjectKind.QUERY, "id", inside=True),
    "create_sql_query": operator(ObjectKind.ORGANIZATION, "organization_id"),
    "update_sql_query": operator(ObjectKind.QUERY, "id"),
    "delete_saved_query": operator(ObjectKind.QUERY, "id"),
    "export_tabular_data": operator(ObjectKind.PART, "part_id"),
    "get_latest_tabular_data": operator(ObjectKind.PART, "part_id"),
    "delete_tabular_data": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "page_of_readings": FILTERED,
    "tabular_series": FILTERED,
    "retention": operator(ObjectKind.ORGANIZATION, "organization_id"),
    "set_retention": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "binary_data_by_filter": FILTERED_OR_JOB,
    "binary_data_by_ids": FILTERED_OR_JOB,
    "delete_binary_data_by_filter": OWNED,
    "delete_binary_data_by_ids": OWNED,
    "create_binary_data_signed_url": home_operator(ObjectKind.FILE, "binary_data_id") | "a link outlasts a share",
    "file": operator(ObjectKind.FILE, "binary_data_id"),
    "add_tags_to_binary_data_by_ids": FILTERED,
    "add_tags_to_binary_data_by_filter": FILTERED,
    "remove_tags_from_binary_data_by_ids": FILTERED,
    "remove_tags_from_binary_data_by_filter": FILTERED,
    "tags_by_filter": FILTERED,
    "tags_of_newest_files": FILTERED,
    "add_bounding_box_to_image_by_id": FILTERED,
    "update_bounding_box": FILTERED,
    "remove_bounding_box_from_image_by_id": FILTERED,
    "bounding_box_labels_by_filter": FILTERED,
    "add_binary_data_to_dataset_by_ids": operator(ObjectKind.DATASET, "dataset_id"),
    "remove_binary_data_from_dataset_by_ids": operator(ObjectKind.DATASET, "dataset_id"),
}

DATASETS: Final[Mapping[str, AccessRule]] = {
    "create_dataset": operator(ObjectKind.ORGANIZATION, "organization_id"),
    "delete_dataset": owner(ObjectKind.DATASET, "id"),
    "rename_dataset": operator(ObjectKind.DATASET, "id"),
    "list_datasets_by_organization_id": operator(ObjectKind.ORGANIZATION, "organization_id"),
    "list_datasets_by_ids": ROLE_ANYWHERE,
    "merge_datasets": operator(ObjectKind.ORGANIZATION, "organization_id"),
}

PACKAGES: Final[Mapping[str, AccessRule]] = {
    "create_package": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "delete_package": owner(ObjectKind.ITEM, "id"),
    "get_package": READABLE,
    "list_packages": operator(ObjectKind.ORGANIZATION, "organization_id"),
}

TRAINING: Final[Mapping[str, AccessRule]] = {
    "submit_training_job": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "submit_custom_training_job": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "get_training_job": owner(ObjectKind.JOB, "id"),
    "list_training_jobs": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "cancel_training_job": owner(ObjectKind.JOB, "id"),
    "delete_completed_training_job": owner(ObjectKind.JOB, "id"),
    "get_training_job_logs": owner(ObjectKind.JOB, "id"),
    "list_supported_containers": signed_in("the environment of training scripts"),
    "list_containers": owner(ObjectKind.ORGANIZATION, "organization_id"),
}

# ---- used only by pages and HTTP routes

EDITOR: Final[Mapping[str, AccessRule]] = {
    "editing": operator(ObjectKind.PART, "part", inside=True),
    "context": operator(ObjectKind.PART, "part", inside=True),
    "running": operator(ObjectKind.PART, "part", inside=True),
    "watch": operator(ObjectKind.PART, "part"),
    "revision": operator(ObjectKind.PART, "part", inside=True),
    "revisions": operator(ObjectKind.PART, "part", inside=True),
    "organizations": ROLE_ANYWHERE,
    "keep_text": owner(ObjectKind.PART, "part"),
    "keep_fragment_text": owner(ObjectKind.FRAGMENT, "fragment"),
    "fragment_editing": operator(ObjectKind.FRAGMENT, "fragment", inside=True),
    "fragment_revisions": operator(ObjectKind.FRAGMENT, "fragment"),
}

FLEET: Final[Mapping[str, AccessRule]] = {
    "machines": ROLE_ANYWHERE,
    "locations": ROLE_ANYWHERE,
    "page": ROLE_ANYWHERE,
    "search": ROLE_ANYWHERE,
    "figures": ROLE_ANYWHERE,
    "machine": signed_in("a machine or part at which the caller has a role; checked by the method"),
    "main_part": operator(ObjectKind.ROBOT, "machine", inside=True),
    "part": operator(ObjectKind.PART, "part", inside=True),
    "arrangement": operator(ObjectKind.PART, "part", inside=True),
    "set_arrangement": home_operator(ObjectKind.PART, "part"),
    "search_logs": ROLE_ANYWHERE,
    "log": operator(ObjectKind.PART, "part", inside=True),
    "log_around": operator(ObjectKind.PART, "part", inside=True),
    "log_counts": operator(ObjectKind.PART, "part", inside=True),
    "newest_log": operator(ObjectKind.PART, "part", inside=True),
    "arrived_logs": operator(ObjectKind.PART, "part", inside=True),
}

LABELLING: Final[Mapping[str, AccessRule]] = {
    "dataset_page": operator(ObjectKind.DATASET, "dataset", inside=True),
    "listed": operator(ObjectKind.ORGANIZATION, "organization", inside=True),
    "labels": operator(ObjectKind.DATASET, "dataset", inside=True),
    "first_picture": operator(ObjectKind.DATASET, "dataset", inside=True),
    "picture": operator(ObjectKind.DATASET, "dataset", inside=True),
    "set_annotations": operator(ObjectKind.DATASET, "dataset"),
    "add_label": operator(ObjectKind.DATASET, "dataset"),
    "rename_label": operator(ObjectKind.DATASET, "dataset"),
    "set_label_color": operator(ObjectKind.DATASET, "dataset"),
    "remove_label": operator(ObjectKind.DATASET, "dataset"),
}

TRAINING_PAGES: Final[Mapping[str, AccessRule]] = {
    "jobs": owner(ObjectKind.ORGANIZATION, "organization"),
    "examination": owner(ObjectKind.DATASET, "dataset"),
    "next_version": owner(ObjectKind.ORGANIZATION, "organization"),
    "seen_job": owner(ObjectKind.JOB, "id"),
    "events": owner(ObjectKind.JOB, "id"),
    "report": owner(ObjectKind.JOB, "id"),
    "versions": owner(ObjectKind.ORGANIZATION, "organization"),
}

ROLES: Final[Mapping[str, AccessRule]] = {
    "places": GIVES,
    "owns": operator(ObjectKind.ORGANIZATION, "organization", inside=True),
    "still_signed_in": signed_in("nothing but an error after signing out"),
}

CHANGES: Final[Mapping[str, AccessRule]] = {"changes": signed_in("changes in organizations that the caller owns")}

TRIGGERS: Final[Mapping[str, AccessRule]] = {
    "overview": ROLE_ANYWHERE,
    "place": operator(ObjectKind.PART, "part_id", inside=True),
    "stored_deliveries": operator(ObjectKind.PART, "part_id"),
    "stored_delivery": operator(ObjectKind.PART, "part_id"),
    "list_triggers": operator(ObjectKind.PART, "part_id"),
    "captured_methods": operator(ObjectKind.PART, "part_id"),
    "list_deliveries": operator(ObjectKind.PART, "part_id"),
    "get_delivery": operator(ObjectKind.PART, "part_id"),
    "explain_trigger": operator(ObjectKind.PART, "part_id"),
    "send_test": owner(ObjectKind.PART, "part_id"),
    "replay_delivery": owner(ObjectKind.PART, "part_id"),
    "start_trigger": owner(ObjectKind.PART, "part_id"),
}

INVITATIONS: Final[Mapping[str, AccessRule]] = {
    "list_invites": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "create_invite_link": owner(ObjectKind.ORGANIZATION, "organization_id"),
}

HISTORY: Final[Mapping[str, AccessRule]] = {
    "list_part_revisions": operator(ObjectKind.PART, "part_id", inside=True),
    "list_fragment_revisions": operator(ObjectKind.FRAGMENT, "fragment_id", inside=True),
}

AT_ALERTS: Final = signed_in("alerts of the caller's organization, at machines at which the caller has a role")

ALERTS: Final[Mapping[str, AccessRule]] = {
    "list_alerts": AT_ALERTS,
    "overview": AT_ALERTS,
    "firing": AT_ALERTS,
    "get_alert": operator(ObjectKind.ALERT, "alert_id"),
    "list_alert_events": AT_ALERTS,
    "acknowledge_alert": operator(ObjectKind.ALERT, "alert_id"),
    "silence_alert": operator(ObjectKind.ALERT, "alert_id"),
    "list_alert_rules": operator(ObjectKind.ORGANIZATION, "organization_id"),
    "set_alert_rule": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "delete_alert_rule": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "list_alert_targets": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "add_alert_target": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "remove_alert_target": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "send_alert_test": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "wait_for_alert_test": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "explain_alert_rule": operator(ObjectKind.ORGANIZATION, "organization_id"),
}

RELEASES: Final[Mapping[str, AccessRule]] = {
    "create_release_keys": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "update_release_metadata": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "start_release_import": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "get_release_import": operator(ObjectKind.ORGANIZATION, "organization_id"),
    "wait_for_release_import": operator(ObjectKind.ORGANIZATION, "organization_id"),
    "rotate_release_keys": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "set_release_channels": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "upload_release_file": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "has_release_file": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "get_release_metadata": operator(ObjectKind.ORGANIZATION, "organization_id"),
    "list_releases": operator(ObjectKind.ORGANIZATION, "organization_id"),
    "start_rollout": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "set_rollout_state": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "get_rollout": operator(ObjectKind.ORGANIZATION, "organization_id"),
}

AGENTS: Final[Mapping[str, AccessRule]] = {
    "report_agent": machine("part_id"),
    "get_agent_state": operator(ObjectKind.PART, "part_id"),
    "list_agents": ROLE_ANYWHERE,
    "wait_for_agent_requests": machine("part_id"),
    "mark_agent_for_update": operator(ObjectKind.PART, "part_id"),
    "mark_agent_for_check": operator(ObjectKind.PART, "part_id"),
    "create_install_code": home_owner(ObjectKind.PART, "part_id"),
}

HEALTH: Final[Mapping[str, AccessRule]] = {"list_health": ROLE_ANYWHERE}

_OWN_MACHINES: Final = signed_in("machines that the caller owns in its own organization; each is checked again")
_OWN_JOBS: Final = signed_in("jobs that the caller started, and those of an organization that it owns")

FLEET_CALLS: Final[Mapping[str, AccessRule]] = {
    "list_fleet_machines": ROLE_ANYWHERE,
    "list_machine_tags": operator(ObjectKind.ROBOT, "machine_id"),
    "add_machine_tags": owner(ObjectKind.ROBOT, "machine_id"),
    "remove_machine_tags": owner(ObjectKind.ROBOT, "machine_id"),
    "preview_fleet_job": _OWN_MACHINES,
    "start_fleet_job": _OWN_MACHINES,
    "list_fleet_jobs": _OWN_JOBS,
    "get_fleet_job": _OWN_JOBS,
    "wait_for_fleet_job": _OWN_JOBS,
    "stop_fleet_job": _OWN_JOBS,
    "revert_fleet_job": _OWN_JOBS | "the machines: as for StartFleetJob",
    "list_fleet_views": signed_in("the caller's own views, and those shared in its organization"),
    "set_fleet_view": signed_in("the caller's own views; shared ones: owners of the organization"),
    "delete_fleet_view": signed_in("the caller's own views; shared ones: owners of the organization"),
}

TRAINING_JOBS: Final[Mapping[str, AccessRule]] = {
    "wait_for_events": owner(ObjectKind.JOB, "id"),
    "list_jobs": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "list_notifications": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "add_notification": owner(ObjectKind.ORGANIZATION, "organization_id"),
    "remove_notification": owner(ObjectKind.ORGANIZATION, "organization_id"),
}

AUTHORITIES: Final[Mapping[str, AccessRule]] = {"list_authorities": public("certificates are public")}

INSTALLATION: Final[Mapping[str, AccessRule]] = {
    "install_part": home_owner(ObjectKind.PART, "part_id"),
    "get_installer": machine("part_id"),
    "redeem_install_code": public("the code is the credential; it is void after its use"),
    "get_install_state": operator(ObjectKind.PART, "part_id"),
}

_OF_HOST: Final = signed_in("of a machine that the caller operates, named by `rpc-host`; checked by the method")

SIGNALLING: Final[Mapping[str, AccessRule]] = {
    "optional_web_rtc_config": _OF_HOST,
    "call": _OF_HOST,
    "call_update": signed_in("the caller's own offers"),
    "answer": AccessRule(
        Role.MACHINE,
        note="the machine itself, named by `rpc-host`; checked by the method; not with a secret of its location",
    ),
    "report_connection_metadata": _OF_HOST,
}

CALL_A_MACHINE: Final = (
    operator(ObjectKind.PART, "part") | "also with a secret of its location, or of the main part of its machine"
)
"""Rule for every call to a machine through the cloud."""


def check_answering(author: Author) -> None:
    """Raise PERMISSION if a caller that acts as a machine must not answer clients in its name.

    Clients know the secret of the location, too: with it, one client could pretend to others to be the machine.
    """
    if author.type == LOCATION:
        raise MachineError(
            "a secret of the location does not let a program answer clients as the machine",
            kind=ErrorKind.PERMISSION,
            remedy="use the secret of the part, or an owner's key",
        )


def calling_role(author: Author) -> Role:
    """Return the role that a caller needs at a part to call it: see CALL_A_MACHINE."""
    return Role.MACHINE if author.type == LOCATION else CALL_A_MACHINE.role


CALLS: Final[Mapping[str, Mapping[str, AccessRule]]] = {
    "viam.app.v1.AppService": APP,
    "viam.app.v1.RobotService": ROBOT,
    "viam.app.agent.v1.AgentDeviceService": AGENT,
    "viam.app.data.v1.DataService": DATA,
    "viam.app.dataset.v1.DatasetService": DATASETS,
    "viam.app.datasync.v1.DataSyncService": DATASYNC,
    "viam.app.packages.v1.PackageService": PACKAGES,
    "viam.app.mltraining.v1.MLTrainingService": TRAINING,
    "machine.cloud.v1.InvitationService": INVITATIONS,
    "machine.cloud.v1.HistoryService": HISTORY,
    "machine.cloud.v1.TriggerService": TRIGGERS,
    "machine.cloud.v1.ReleaseService": RELEASES,
    "machine.cloud.v1.AlertService": ALERTS,
    "machine.cloud.v1.RolloutService": ROLLOUTS,
    "machine.cloud.v1.AgentService": AGENTS,
    "machine.cloud.v1.HealthService": HEALTH,
    "machine.cloud.v1.FleetService": FLEET_CALLS,
    "machine.cloud.v1.TrainingService": TRAINING_JOBS,
    "proto.rpc.webrtc.v1.SignalingService": SIGNALLING,
}
"""Rules by service of the RPC server. Some methods are used by pages only."""

STANDARD: Final[Mapping[str, AccessRule]] = {
    "/proto.rpc.v1.AuthService/Authenticate": public("a key or secret is the credential"),
    "/grpc.health.v1.Health/Check": public("whether the server answers; for a single service, a key is needed"),
    "/grpc.health.v1.Health/Watch": signed_in("the same"),
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo": signed_in("published names"),
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": signed_in("published names"),
}
"""Rules for the calls that rpc.server.standard answers on every server."""
