"""Types of fields of messages that are not numbers, texts or messages of their own package."""

from __future__ import annotations

from typing import Final

TIME: Final = "google.protobuf.Timestamp"
DURATION: Final = "google.protobuf.Duration"
STRUCT: Final = "google.protobuf.Struct"
VALUE: Final = "google.protobuf.Value"
MAP: Final = "map<string,string>"
