"""Servo `gpio`: a servo controlled by the width of pulses on a pin."""
