"""Generic component `usb`: commands for a raw USB device."""
