"""Simulated chips with their registers: tests set physical quantities, and drivers read registers.

They are written from the data sheets, independently of the drivers, so that tests can find mistakes in both. Each is an
I2cTarget or SpiTarget; `clock` returns the time in seconds; `power_cycle()` switches the supply off and on.
"""
