"""Attributes of the board `linux`."""

from __future__ import annotations
