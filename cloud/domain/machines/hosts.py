"""Host names of machines, which lead to the cloud: a wildcard DNS name of the operator points to it. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from cloud.values.names import slug
from rpc.access import host_of

MAX_LABEL: Final = 63  # characters of a label of a host name: RFC 1035 2.3.4
_ID: Final = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"  # of a part: see cloud.values.names.new_id
_ID_LENGTH: Final = 36
_LABEL: Final = re.compile(rf"(?:[a-z0-9-]+-)?({_ID})")


@dataclass(frozen=True, slots=True)
class MachineHosts:
    """Host names under `domain`, in lower case and without a leading dot. Without it, machines have no such names.

    The name of a part is one label, so that one wildcard certificate applies to all: the part's name, for people, and
    its id, which identifies it.
    """

    domain: str = ""

    def name_of(self, part: str, name: str) -> str:
        """Return the host name of the part with the id `part`; "" without a domain."""
        return f"{self.label_of(part, name)}.{self.domain}" if self.domain else ""

    def label_of(self, part: str, name: str) -> str:
        """Return the first label of the host name of a part, which names it without a domain, too."""
        prefix = slug(name)[: MAX_LABEL - _ID_LENGTH - 1].strip("-")
        return f"{prefix}-{part}"

    def part_of(self, authority: str) -> str | None:
        """Return the id of the part that `host` or `host:port` names; None for a name of another form.

        Without the domain, the label or the id alone names a part too: clients that have the cloud's address from
        elsewhere need no DNS. The part may not exist.
        """
        host = host_of(authority).rstrip(".").lower()
        label, _, domain = host.partition(".")
        match = _LABEL.fullmatch(label)
        return match[1] if match is not None and domain in ("", self.domain) else None
