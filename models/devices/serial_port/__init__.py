"""Generic component `serial_port`: commands for a raw serial device."""
