"""Attributes of `common`. Pure."""

from __future__ import annotations

from typing import Literal

Encoding = Literal["utf-8", "latin-1", "base64"]
