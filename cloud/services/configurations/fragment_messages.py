"""Response messages about fragments: one dataclass per published message, with its field names."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum

from cloud.domain.permissions.shown import Shown, ShownText
from cloud.services.common.messages import AuthenticatorInfo


class Visibility(IntEnum):
    """Who may use a fragment."""

    UNSPECIFIED = 0
    PRIVATE = 1
    PUBLIC = 2
    PUBLIC_UNLISTED = 3


@dataclass(frozen=True, slots=True)
class Fragment:
    """A fragment in one revision."""

    id: str
    name: str = ""
    fragment: Shown | None = None
    organization_owner: str = ""
    public: bool = False
    created_on: datetime | None = None
    organization_name: str = ""
    robot_part_count: int = 0
    organization_count: int = 0
    only_used_by_owner: bool = True
    visibility: Visibility = Visibility.UNSPECIFIED
    last_updated: datetime | None = None
    revision: str = ""
    fragment_config_json: ShownText | None = None


@dataclass(frozen=True, slots=True)
class FragmentUsage:
    """Numbers of users of a fragment. Machines of other organizations are counted, never named."""

    fragment_id: str
    organizations: int = 0
    machines: int = 0
    machines_in_current_org: int = 0
    version: str | None = None


@dataclass(frozen=True, slots=True)
class FragmentRevision:
    """A revision and its creation time."""

    revision: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class FragmentTag:
    """A tag and the revision that it refers to."""

    tag: str
    revision: str


@dataclass(frozen=True, slots=True)
class ListFragmentsResponse:
    """Fragments and their usage."""

    fragments: list[Fragment]
    fragment_usages: list[FragmentUsage]


@dataclass(frozen=True, slots=True)
class GetFragmentResponse:
    """A fragment with its revisions, newest first, and its tags."""

    fragment: Fragment
    fragment_usage: FragmentUsage
    revisions: list[FragmentRevision]
    tags: list[FragmentTag]


@dataclass(frozen=True, slots=True)
class FragmentHistoryEntry:
    """A save of a fragment."""

    fragment: str
    edited_on: datetime
    old: Fragment | None
    edited_by: AuthenticatorInfo
    revision: str
    config: Shown


@dataclass(frozen=True, slots=True)
class GetFragmentHistoryResponse:
    """A page of saves, newest first."""

    history: list[FragmentHistoryEntry]
    next_page_token: str


@dataclass(frozen=True, slots=True)
class FragmentError:
    """The reason why a fragment could not be merged."""

    error_type: int
    fragment_id: str
    detail: str


@dataclass(frozen=True, slots=True)
class ResolvedFragment:
    """The configuration that a fragment adds."""

    fragment_id: str
    resolved_config: Shown | None = None
    error: FragmentError | None = None
    revision: str = ""


@dataclass(frozen=True, slots=True)
class Resolution:
    """All fragments of a machine or a fragment, each with the configuration that it adds."""

    fragments: list[Fragment]
    resolved_fragments: list[ResolvedFragment]


@dataclass(frozen=True, slots=True)
class AdditionalFragment:
    """A fragment that the saved configuration does not use yet."""

    fragment_id: str
    version: str | None = None
