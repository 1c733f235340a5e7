"""What is answered about fragments: one dataclass for each published message, with its field names."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum

from cloud.services.messages import AuthenticatorInfo
from cloud.shown import Shown, ShownText


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
    """How many use it. Machines of others are counted, never named."""

    fragment_id: str
    organizations: int = 0
    machines: int = 0
    machines_in_current_org: int = 0
    version: str | None = None


@dataclass(frozen=True, slots=True)
class FragmentRevision:
    """A revision and when it was made."""

    revision: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class FragmentTag:
    """A tag and the revision that it means."""

    tag: str
    revision: str


@dataclass(frozen=True, slots=True)
class ListFragmentsResponse:
    """Fragments, and how they are used."""

    fragments: list[Fragment]
    fragment_usages: list[FragmentUsage]


@dataclass(frozen=True, slots=True)
class GetFragmentResponse:
    """A fragment with its revisions, the newest first, and its tags."""

    fragment: Fragment
    fragment_usage: FragmentUsage
    revisions: list[FragmentRevision]
    tags: list[FragmentTag]


@dataclass(frozen=True, slots=True)
class FragmentHistoryEntry:
    """One save."""

    fragment: str
    edited_on: datetime
    old: Fragment | None
    edited_by: AuthenticatorInfo
    revision: str
    config: Shown


@dataclass(frozen=True, slots=True)
class GetFragmentHistoryResponse:
    """A page of saves, the newest first."""

    history: list[FragmentHistoryEntry]
    next_page_token: str


@dataclass(frozen=True, slots=True)
class FragmentError:
    """Why a fragment could not be merged."""

    error_type: int
    fragment_id: str
    detail: str


@dataclass(frozen=True, slots=True)
class ResolvedFragment:
    """What a fragment brings."""

    fragment_id: str
    resolved_config: Shown | None = None
    error: FragmentError | None = None
    revision: str = ""


@dataclass(frozen=True, slots=True)
class Resolution:
    """Every fragment of something, and what each brings."""

    fragments: list[Fragment]
    resolved_fragments: list[ResolvedFragment]


@dataclass(frozen=True, slots=True)
class AdditionalFragment:
    """One that is not in the saved configuration yet."""

    fragment_id: str
    version: str | None = None
