"""Access to gpiozero, an optional dependency, and its default pin factory."""

from __future__ import annotations

from typing import Any

from hal.errors import Fault, HalError


def default_factory() -> Any:
    """Return gpiozero's default factory, selected by GPIOZERO_PIN_FACTORY or the installed libraries.

    HalError (unsupported) if gpiozero or a library that it needs is missing.
    """
    try:
        from gpiozero import Device
        from gpiozero.exc import GPIOZeroError
    except ImportError as error:
        raise HalError(
            f"gpiozero cannot be imported: {error}",
            Fault.UNSUPPORTED,
            remedy='install it: pip install "machine-runtime[gpiozero]"',
        ) from error
    try:
        Device.ensure_pin_factory()
    except (GPIOZeroError, ImportError, OSError) as error:
        raise HalError(
            f"gpiozero cannot access the pins: {error or type(error).__name__}",
            Fault.UNSUPPORTED,
            remedy="install lgpio, or set a pin factory in GPIOZERO_PIN_FACTORY",
        ) from error
    return Device.pin_factory


def refused(error: Exception, what: str) -> HalError:
    """Convert an error of gpiozero about `what` to a HalError. Raise the result `from error`."""
    from gpiozero import exc

    text = f"{what}: {error or type(error).__name__}"
    if isinstance(error, exc.GPIOPinInUse):
        return HalError(text, Fault.BUSY, remedy="close the gpiozero device that uses it")
    if isinstance(error, exc.PinInvalidPin):
        return HalError(text, Fault.GONE, remedy="use a pin that the pin factory has")
    if isinstance(error, (exc.GPIOZeroError, ValueError)):
        return HalError(text, Fault.UNSUPPORTED, remedy="choose another pin, or another pin factory")
    if isinstance(error, OSError):
        return HalError.of(error, what, group="gpio")
    return HalError(text, Fault.BUS)
