"""Version of the published API."""

from __future__ import annotations

from typing import Final

PLATFORM: Final = "rdk"  # name of a machine server on the wire
API_VERSION: Final = "v0.1.601"  # of the published API in the pinned viam-sdk
