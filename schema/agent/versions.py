"""URLs of releases, as logs and reports show them."""

from __future__ import annotations

from urllib.parse import urlsplit


def shown_url(url: str) -> str:
    """Return a URL without what may be secret in it: user, password, query and fragment."""
    try:
        parts = urlsplit(url)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
    except ValueError:
        return "a URL that is not valid"
