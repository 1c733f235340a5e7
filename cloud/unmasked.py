"""That a document which was read without its secrets is not saved in their place: pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schema.errors import ErrorKind, MachineError
from schema.secrets import MASK, masks_in


def check_unmasked(document: Mapping[str, Any], before: Mapping[str, Any]) -> None:
    """INVALID if a mask stands in `document` where a secret belongs, so that a copy that was read without its secrets
    does not overwrite them. What stood there `before` may stay."""
    new = set(masks_in(document)) - set(masks_in(before))
    if new:
        raise MachineError(
            f"{'.'.join(min(new))[:200]}: {MASK} stands for a secret that was not shown",
            kind=ErrorKind.INVALID,
            remedy="write the secret itself, or change the document as an owner reads it",
        )
