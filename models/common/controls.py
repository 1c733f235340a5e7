"""The names of controls that every client supports. Pure."""

from __future__ import annotations

CONTROLS: tuple[str, ...] = (
    *(f"Absolute{axis}" for axis in ("X", "Y", "Z", "RX", "RY", "RZ", "Hat0X", "Hat0Y")),
    *(f"AbsolutePedal{pedal}" for pedal in ("Accelerator", "Brake", "Clutch")),
    *(f"Button{side}" for side in ("South", "East", "West", "North", "LT", "RT", "LT2", "RT2", "LThumb", "RThumb")),
    *(f"Button{use}" for use in ("Select", "Start", "Menu", "Record", "EStop")),
)
"""Standard names of controls, which every client supports. A driver may have others."""
