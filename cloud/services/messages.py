"""What the services answer: one dataclass for each published message, with its field names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from typing import Any

from cloud.shown import Shown, ShownText, nothing


@dataclass(frozen=True, slots=True)
class Organization:
    """Owns locations, keys and fragments."""

    id: str
    name: str
    created_on: datetime | None = None
    public_namespace: str = ""
    default_region: str = ""


@dataclass(frozen=True, slots=True)
class OrganizationIdentity:
    """An organization, by name."""

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
    """Whether a part is heard of."""

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
    """One secret of a part."""

    id: str
    secret: str
    created_on: datetime | None = None
    state: int = 1  # STATE_ENABLED


@dataclass(frozen=True, slots=True)
class RobotPart:
    """A part, with its configuration where that was asked for."""

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
    """A part, and its configuration as text."""

    part: RobotPart
    config_json: ShownText


class AuthenticationType(IntEnum):
    """With what somebody has signed in."""

    UNSPECIFIED = 0
    WEB_OAUTH = 1
    API_KEY = 2
    ROBOT_PART_SECRET = 3
    LOCATION_SECRET = 4


@dataclass(frozen=True, slots=True)
class AuthenticatorInfo:
    """Who changed something."""

    type: AuthenticationType
    value: str
    is_deactivated: bool = False


@dataclass(frozen=True, slots=True)
class RobotPartHistoryEntry:
    """One save; `old` has the configuration that it replaced."""

    part: str
    robot: str
    when: datetime
    old: RobotPart
    edited_by: AuthenticatorInfo


@dataclass(frozen=True, slots=True)
class GetRobotPartHistoryResponse:
    """A page of history, the newest first."""

    history: list[RobotPartHistoryEntry]
    next_page_token: str = ""


@dataclass(frozen=True, slots=True)
class ConfigPropertyChange:
    """A value for one place of a configuration; no value removes what is there."""

    path: str = ""
    value: Any = None


@dataclass(frozen=True, slots=True)
class ConfigPropertyChangeResult:
    """What became of one change."""

    path: str
    value: Any = None
    success: bool = False
    error: str = ""


class LogOrder(IntEnum):
    """In which order entries come."""

    UNSPECIFIED = 0
    ASCENDING = 1
    DESCENDING = 2


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One log entry of a machine."""

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
    """A role of somebody at a resource, as requests name it."""

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
    """A key that was just made: the only time that it is shown."""

    id: str
    key: str


@dataclass(frozen=True, slots=True)
class RenamedKey:
    """A key under its new name."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class AuthorizedPermissions:
    """What somebody may do at a resource."""

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
    """An invitation that is open."""

    organization_id: str
    email: str
    created_on: datetime
    authorizations: list[Authorization]


@dataclass(frozen=True, slots=True)
class OrganizationMembers:
    """People, and whoever is invited."""

    organization_id: str
    members: list[OrganizationMember]
    invites: list[OrganizationInvite]


@dataclass(frozen=True, slots=True)
class OrgDetails:
    """An organization that was looked for."""

    org_id: str
    org_name: str
    public_namespace: str | None = None


@dataclass(frozen=True, slots=True)
class LocationAuth:
    """The secrets of a location, the newest first."""

    secret: str
    location_id: str
    secrets: list[SharedSecret]


@dataclass(frozen=True, slots=True)
class Version:
    """The version of a program of a machine: one of `major` and `minor`, of which the latter says more."""

    minor: str


@dataclass(frozen=True, slots=True)
class FragmentSummary:
    """A fragment that a part's configuration names."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class PartSummary:
    """A part in the fleet view."""

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
    """A machine in the fleet view."""

    machine_id: str
    machine_name: str
    part_summaries: list[PartSummary]


@dataclass(frozen=True, slots=True)
class LocationSummary:
    """A location in the fleet view."""

    location_id: str
    location_name: str
    machine_summaries: list[MachineSummary]
