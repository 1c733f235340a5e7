"""Forms of `version_control`."""

from __future__ import annotations

import re
from enum import Enum
from urllib.parse import urlsplit

from schema.versions import SemanticVersion


class VersionForm(Enum):
    """Form of a value of `version_control`."""

    STABLE = "stable"  # the newest release
    DEV = "dev"  # the newest version, including pre-releases
    SEMANTIC = "semantic"  # exactly this version
    HTTPS = "https"
    FILE = "file"
    HTTP = "http"  # anyone on the network path can replace the program: needs the consent of the device


def version_form(text: str) -> VersionForm | None:
    """Return the form of a value of `version_control`; None if it is not valid."""
    if text in ("stable", "dev"):
        return VersionForm(text)
    if re.search(r"[\s\x00-\x1f\x7f]", text):  # urlsplit would remove some of these
        return None
    try:
        url = urlsplit(text)
        if url.scheme == "file":
            is_file = url.path.startswith("/") and not url.path.endswith("/") and not url.query and not url.fragment
            return VersionForm.FILE if is_file and url.netloc in ("", "localhost") else None
        if url.scheme in ("https", "http"):
            return VersionForm(url.scheme) if url.hostname and url.port != 0 else None
        SemanticVersion.parse(text)
    except ValueError:
        return None
    return VersionForm.SEMANTIC


def shown_url(url: str) -> str:
    """Return a URL without what may be secret in it: user, password, query and fragment."""
    try:
        parts = urlsplit(url)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
    except ValueError:
        return "a URL that is not valid"
