"""Response messages of the services: one dataclass per published message, with its field names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from typing import Any

from cloud.domain.permissions.shown import Shown, ShownText, nothing


@dataclass(frozen=True, slots=True)
class Organization:
    """An organization, which owns locations, keys and fragments."""

    id: str
    name: str
    created_on: datetime | None = None
    public_namespace: str = ""
    default_region: str = ""


@dataclass(frozen=True, slots=True)
class OrganizationIdentity:
    """The id and name of an organization."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class LocationOrganization:
    """An organization with access to a location."""

    organization_id: str
    primary: bool = True


@dataclass(frozen=True, slots=True)
class Location:
    """A location with the number of its machines."""

    id: str
    name: str
    parent_location_id: str = ""
    organizations: list[LocationOrganization] = field(default_factory=list)
    created_on: datetime | None = None
    robot_count: int = 0
    primary_org_identity: OrganizationIdentity | None = None


class OnlineState(IntEnum):
    """Whether a part is online."""

    UNSPECIFIED = 0
    ONLINE = 1
    OFFLINE = 2
    AWAITING_SETUP = 3


@dataclass(frozen=True, slots=True)
class Robot:
    """A machine."""

    id: str
    name: str
    location: str
    last_access: datetime | None = None
    created_on: datetime | None = None
    online_state: OnlineState = OnlineState.UNSPECIFIED
    seconds_since_online: int = 0


@dataclass(frozen=True, slots=True)
class SharedSecret:
    """A secret of a part or a location."""

    id: str
    secret: str
    created_on: datetime | None = None
    state: int = 1  # STATE_ENABLED


@dataclass(frozen=True, slots=True)
class RobotPart:
    """A part; its configuration is present if it was requested."""

    id: str
    name: str = ""
    dns_name: str = ""
    secret: str = ""
    robot: str = ""
    location_id: str = ""
    robot_config: Shown = field(default_factory=nothing)
    last_access: datetime | None = None
    user_supplied_info: Mapping[str, Any] = field(default_factory=dict)
    main_part: bool = False
    fqdn: str = ""
    local_fqdn: str = ""
    created_on: datetime | None = None
    secrets: list[SharedSecret] = field(default_factory=list)
    last_updated: datetime | None = None
    online_state: OnlineState = OnlineState.UNSPECIFIED
    seconds_since_online: int = 0
    robot_config_json: ShownText | None = None


@dataclass(frozen=True, slots=True)
class GetRobotPartResponse:
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


@dataclass(frozen=True, slots=True)
class AuthenticatorInfo:
    """The author of a change."""

    type: AuthenticationType
    value: str
    is_deactivated: bool = False


@dataclass(frozen=True, slots=True)
class RobotPartHistoryEntry:
    """A save; `old` has the configuration that it replaced."""

    part: str
    robot: str
    when: datetime
    old: RobotPart
    edited_by: AuthenticatorInfo


@dataclass(frozen=True, slots=True)
class GetRobotPartHistoryResponse:
    """A page of history, newest first."""

    history: list[RobotPartHistoryEntry]
    next_page_token: str = ""


@dataclass(frozen=True, slots=True)
class ConfigPropertyChange:
    """A new value at a path of a configuration; None removes the present value."""

    path: str = ""
    value: Any = None


@dataclass(frozen=True, slots=True)
class ConfigPropertyChangeResult:
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


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A log entry of a machine."""

    host: str = ""
    level: str = ""
    time: datetime | None = None
    logger_name: str = ""
    message: str = ""
    caller: Mapping[str, Any] | None = None
    stack: str = ""
    fields: list[Mapping[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class GetRobotPartLogsResponse:
    """A page of log entries."""

    logs: list[LogEntry]
    next_page_token: str = ""


@dataclass(frozen=True, slots=True)
class Authorization:
    """A role of an identity at a resource, as in requests."""

    authorization_type: str = ""
    authorization_id: str = ""
    resource_type: str = ""
    resource_id: str = ""
    identity_id: str = ""
    organization_id: str = ""
    identity_type: str = ""


@dataclass(frozen=True, slots=True)
class AuthorizationDetails:
    """A role of a key."""

    authorization_type: str
    authorization_id: str
    resource_type: str
    resource_id: str
    org_id: str


@dataclass(frozen=True, slots=True)
class APIKey:
    """A key without its secret: `key` is empty."""

    id: str
    key: str
    name: str
    created_on: datetime | None = None


@dataclass(frozen=True, slots=True)
class APIKeyWithAuthorizations:
    """A key with its roles."""

    api_key: APIKey
    authorizations: list[AuthorizationDetails]


@dataclass(frozen=True, slots=True)
class NewKey:
    """A new key with its secret, which is returned only once."""

    id: str
    key: str


@dataclass(frozen=True, slots=True)
class RenamedKey:
    """A key with its new name."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class AuthorizedPermissions:
    """Permissions of the caller at a resource."""

    resource_type: str = ""
    resource_id: str = ""
    permissions: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class OrganizationMember:
    """A person with a key of the organization."""

    user_id: str
    emails: list[str]
    date_added: datetime


@dataclass(frozen=True, slots=True)
class OrganizationInvite:
    """An open invitation."""

    organization_id: str
    email: str
    created_on: datetime
    authorizations: list[Authorization]


@dataclass(frozen=True, slots=True)
class OrganizationMembers:
    """The members of an organization and its open invitations."""

    organization_id: str
    members: list[OrganizationMember]
    invites: list[OrganizationInvite]


@dataclass(frozen=True, slots=True)
class OrgDetails:
    """An organization in search results."""

    org_id: str
    org_name: str
    public_namespace: str | None = None


@dataclass(frozen=True, slots=True)
class LocationAuth:
    """The secrets of a location, newest first."""

    secret: str
    location_id: str
    secrets: list[SharedSecret]


@dataclass(frozen=True, slots=True)
class Version:
    """The version of a program on a machine. Of the alternatives `major` and `minor`, only the more precise is used."""

    minor: str


@dataclass(frozen=True, slots=True)
class FragmentSummary:
    """A fragment that a part's configuration refers to."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class PartSummary:
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
    fragments: list[FragmentSummary] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class MachineSummary:
    """A machine in the fleet summary."""

    machine_id: str
    machine_name: str
    part_summaries: list[PartSummary]


@dataclass(frozen=True, slots=True)
class LocationSummary:
    """A location in the fleet summary."""

    location_id: str
    location_name: str
    machine_summaries: list[MachineSummary]
