"""Types of credentials as they are written on the wire, and the method that exchanges them for a token."""

from __future__ import annotations

from typing import Final

AUTHENTICATE: Final = "/proto.rpc.v1.AuthService/Authenticate"
API_KEY: Final = "api-key"
LOCATION_SECRET: Final = "robot-location-secret"
PART_SECRET: Final = "robot-secret"
CREDENTIAL_TYPES: Final = (API_KEY, LOCATION_SECRET, PART_SECRET)
