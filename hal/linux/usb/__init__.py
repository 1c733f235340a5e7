"""USB devices through libusb, and their listing from sysfs."""
