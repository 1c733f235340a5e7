"""Discovery of simulated devices and of the serial ports of this computer."""
