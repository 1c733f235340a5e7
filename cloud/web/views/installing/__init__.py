"""What the page of an installation shows: a QR code, and an address that other computers can use."""
