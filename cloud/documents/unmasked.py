"""Checks that a document that was read with masked secrets is not saved with the masks: pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schema import MASK, ErrorKind, MachineError, masks_in


def check_unmasked(document: Mapping[str, Any], before: Mapping[str, Any]) -> None:
    """Raise INVALID if `document` has masks instead of secrets, unless these were there `before`.

    A copy that was read without secrets thus cannot overwrite them.
    """
    new = set(masks_in(document)) - set(masks_in(before))
    if new:
        raise MachineError(
            f"{'.'.join(min(new))[:200]}: {MASK} is a mask, not the secret",
            kind=ErrorKind.INVALID,
            remedy="write the secret itself, or edit a copy of the document that was read with an owner's key",
        )
