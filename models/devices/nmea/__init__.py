"""Movement sensor `nmea`: a satellite receiver (GPS, GNSS) or compass with NMEA 0183 on a serial port."""
