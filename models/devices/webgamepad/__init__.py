"""A gamepad in a browser, whose page sends its events with TriggerEvent."""
