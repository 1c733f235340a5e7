"""What a machine did, for whoever looks back: events of the logger `rdk.activity`, shown whatever the levels are."""

from __future__ import annotations

import logging
import sys
from typing import Any

from telemetry.names import ACTIVITY


def tell(activity: str, event: str, **fields: Any) -> None:
    """Log one event, such as `reconfigure` `complete`; both words are fields too, beside `fields`.

    Fields that are empty are left out. Durations are in seconds.
    """
    told = {"activity": activity, "event_": event, **{key: value for key, value in fields.items() if value != ""}}
    caller = sys._getframe(1)
    code = caller.f_code
    message = {"event": f"{activity} {event}", **told}
    logging.getLogger(ACTIVITY).handle(
        logging.LogRecord(ACTIVITY, logging.INFO, code.co_filename, caller.f_lineno, message, None, None)
    )
