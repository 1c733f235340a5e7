"""Messages of the services: one class for each published message, with its field names."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import IntEnum
from typing import Any

from msgspec import Struct

from cloud.domain.permissions.shown import Shown, ShownText, empty


class Organization(Struct, frozen=True):
    """An organization, which owns locations, keys and fragments."""

    id: str
    name: str
    created_on: datetime | None = None
    public_namespace: str = ""
    default_region: str = ""


class OrganizationIdentity(Struct, frozen=True):
    """The id and name of an organization."""

    id: str
    name: str


class LocationOrganization(Struct, frozen=True):
    """An organization with access to a location."""

    organization_id: str
    primary: bool = True


class Location(Struct, frozen=True):
    """A location with the number of its machines."""

    id: str
    name: str
    parent_location_id: str = ""
    organizations: list[LocationOrganization] = []
    created_on: datetime | None = None
    robot_count: int = 0
    primary_org_identity: OrganizationIdentity | None = None


class OnlineState(IntEnum):
    """Whether a part is online."""

    UNSPECIFIED = 0
    ONLINE = 1
    OFFLINE = 2
    AWAITING_SETUP = 3


class Robot(Struct, frozen=True):
    """A machine."""

    id: str
    name: str
    location: str
    last_access: datetime | None = None
    created_on: datetime | None = None
    online_state: OnlineState = OnlineState.UNSPECIFIED
    seconds_since_online: int = 0


class SharedSecret(Struct, frozen=True):
    """A secret of a part or a location."""

    id: str
    secret: str
    created_on: datetime | None = None
    state: int = 1  # STATE_ENABLED


class RobotPart(Struct, frozen=True):
    """A part; its configuration is present if it was requested."""

    id: str
    name: str = ""
    dns_name: str = ""
    secret: str = ""
    robot: str = ""
    location_id: str = ""
    robot_config: Shown = empty()
    last_access: datetime | None = None
    user_supplied_info: Mapping[str, Any] = {}
    main_part: bool = False
    fqdn: str = ""
    local_fqdn: str = ""
    created_on: datetime | None = None
    secrets: list[SharedSecret] = []
    last_updated: datetime | None = None
    online_state: OnlineState = OnlineState.UNSPECIFIED
    seconds_since_online: int = 0
    robot_config_json: ShownText | None = None


class GetRobotPartResponse(Struct, frozen=True):
    """A part, with its configuration as text."""

    part: RobotPart
    config_json: ShownText


class AuthenticationType(IntEnum):
    """Type of the credentials that a caller authenticated with."""

    UNSPECIFIED = 0
    WEB_OAUTH = 1
    API_KEY = 2
    ROBOT_PART_SECRET = 3
    LOCATION_SECRET = 4


class AuthenticatorInfo(Struct, frozen=True):
    """The author of a change."""

    type: AuthenticationType
    value: str
    is_deactivated: bool = False


class RobotPartHistoryEntry(Struct, frozen=True):
    """A save; `old` has the configuration that it replaced."""

    part: str
    robot: str
    when: datetime
    old: RobotPart
    edited_by: AuthenticatorInfo


class GetRobotPartHistoryResponse(Struct, frozen=True):
    """A page of history, newest first."""

    history: list[RobotPartHistoryEntry]
    next_page_token: str = ""


class ConfigPropertyChange(Struct, frozen=True):
    """A new value at a path of a configuration; None removes the present value."""

    path: str = ""
    value: Any = None


class ConfigPropertyChangeResult(Struct, frozen=True):
    """The result of one property change."""

    path: str
    value: Any = None
    success: bool = False
    error: str = ""


class LogOrder(IntEnum):
    """Order of log entries by time."""

    UNSPECIFIED = 0
    ASCENDING = 1
    DESCENDING = 2


class LogEntry(Struct, frozen=True):
    """A log entry of a machine."""

    host: str = ""
    level: str = ""
    time: datetime | None = None
    logger_name: str = ""
    message: str = ""
    caller: Mapping[str, Any] | None = None
    stack: str = ""
    fields: list[Mapping[str, Any]] = []


class GetRobotPartLogsResponse(Struct, frozen=True):
    """A page of log entries."""

    logs: list[LogEntry]
    next_page_token: str = ""


class Authorization(Struct, frozen=True):
    """A role of an identity at a resource, as in requests."""

    authorization_type: str = ""
    authorization_id: str = ""
    resource_type: str = ""
    resource_id: str = ""
    identity_id: str = ""
    organization_id: str = ""
    identity_type: str = ""


class AuthorizationDetails(Struct, frozen=True):
    """A role of a key."""

    authorization_type: str
    authorization_id: str
    resource_type: str
    resource_id: str
    org_id: str


class APIKey(Struct, frozen=True):
    """A key without its secret: `key` is empty."""

    id: str
    key: str
    name: str
    created_on: datetime | None = None


class APIKeyWithAuthorizations(Struct, frozen=True):
    """A key with its roles."""

    api_key: APIKey
    authorizations: list[AuthorizationDetails]


class NewKey(Struct, frozen=True):
    """A new key with its secret, which is returned only once."""

    id: str
    key: str


class RenamedKey(Struct, frozen=True):
    """A key with its new name."""

    id: str
    name: str


class AuthorizedPermissions(Struct, frozen=True):
    """Permissions of the caller at a resource."""

    resource_type: str = ""
    resource_id: str = ""
    permissions: list[str] = []


class OrganizationMember(Struct, frozen=True):
    """A person with a key of the organization."""

    user_id: str
    emails: list[str]
    date_added: datetime


class OrganizationInvite(Struct, frozen=True):
    """An open invitation."""

    organization_id: str
    email: str
    created_on: datetime
    authorizations: list[Authorization]


class OrganizationMembers(Struct, frozen=True):
    """The members of an organization and its open invitations."""

    organization_id: str
    members: list[OrganizationMember]
    invites: list[OrganizationInvite]


class OrgDetails(Struct, frozen=True):
    """An organization in search results."""

    org_id: str
    org_name: str
    public_namespace: str | None = None


class LocationAuth(Struct, frozen=True):
    """The secrets of a location, newest first."""

    secret: str
    location_id: str
    secrets: list[SharedSecret]


class Version(Struct, frozen=True):
    """The version of a program on a machine. Of the alternatives `major` and `minor`, only the more precise is used."""

    minor: str


class FragmentSummary(Struct, frozen=True):
    """A fragment that a part's configuration refers to."""

    id: str
    name: str


class PartSummary(Struct, frozen=True):
    """A part in the fleet summary."""

    part_id: str
    part_name: str
    is_main_part: bool
    online_state: OnlineState
    seconds_since_online: int = 0
    last_access: datetime | None = None
    last_online: datetime | None = None
    viam_server_version: Version | None = None
    viam_agent_version: Version | None = None
    os: str | None = None
    platform: str | None = None
    public_ip_address: str | None = None
    dns_name: str | None = None
    fragments: list[FragmentSummary] = []


class MachineSummary(Struct, frozen=True):
    """A machine in the fleet summary."""

    machine_id: str
    machine_name: str
    part_summaries: list[PartSummary]


class LocationSummary(Struct, frozen=True):
    """A location in the fleet summary."""

    location_id: str
    location_name: str
    machine_summaries: list[MachineSummary]
