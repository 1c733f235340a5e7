"""Labels of networks that are not from the configuration. Pure."""

from __future__ import annotations

from netmgr.model.network import ssid_text


def portal_label(ssid: bytes) -> str:
    """Return the label of a network that was entered in the portal or an app."""
    return f"portal: {ssid_text(ssid)}"


def console_label(ssid: bytes) -> str:
    """Return the label of a network that was entered on the command line of the device."""
    return f"console: {ssid_text(ssid)}"
