"""Response messages about fragments: one class for each published message, with its field names."""

from __future__ import annotations

from datetime import datetime
from enum import IntEnum

from msgspec import Struct

from cloud.domain.permissions.shown import Shown, ShownText
from cloud.services.common.messages import AuthenticatorInfo


class Visibility(IntEnum):
    """Who may use a fragment."""

    UNSPECIFIED = 0
    PRIVATE = 1
    PUBLIC = 2
    PUBLIC_UNLISTED = 3


class Fragment(Struct, frozen=True):
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


class FragmentUsage(Struct, frozen=True):
    """Numbers of users of a fragment. Machines of other organizations are counted, never named."""

    fragment_id: str
    organizations: int = 0
    machines: int = 0
    machines_in_current_org: int = 0
    version: str | None = None


class FragmentRevision(Struct, frozen=True):
    """A revision and its creation time."""

    revision: str
    created_at: datetime


class FragmentTag(Struct, frozen=True):
    """A tag and the revision that it refers to."""

    tag: str
    revision: str


class ListFragmentsResponse(Struct, frozen=True):
    """Fragments and their usage."""

    fragments: list[Fragment]
    fragment_usages: list[FragmentUsage]


class GetFragmentResponse(Struct, frozen=True):
    """A fragment with its revisions, newest first, and its tags."""

    fragment: Fragment
    fragment_usage: FragmentUsage
    revisions: list[FragmentRevision]
    tags: list[FragmentTag]


class FragmentHistoryEntry(Struct, frozen=True):
    """A save of a fragment."""

    fragment: str
    edited_on: datetime
    old: Fragment | None
    edited_by: AuthenticatorInfo
    revision: str
    config: Shown


class GetFragmentHistoryResponse(Struct, frozen=True):
    """A page of saves, newest first."""

    history: list[FragmentHistoryEntry]
    next_page_token: str


class FragmentError(Struct, frozen=True):
    """The reason why a fragment could not be merged."""

    error_type: int
    fragment_id: str
    detail: str


class ResolvedFragment(Struct, frozen=True):
    """The configuration that a fragment adds."""

    fragment_id: str
    resolved_config: Shown | None = None
    error: FragmentError | None = None
    revision: str = ""


class Resolution(Struct, frozen=True):
    """All fragments of a machine or a fragment, each with the configuration that it adds."""

    fragments: list[Fragment]
    resolved_fragments: list[ResolvedFragment]


class AdditionalFragment(Struct, frozen=True):
    """A fragment that the saved configuration does not use yet."""

    fragment_id: str
    version: str | None = None
