"""Sensor `serial_line`: readings from the last line received on a serial port."""
