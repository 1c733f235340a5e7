"""Plant models of chips, seen from their registers: what a test sets in physical units, a bus reads in bits.

Written from the data sheets alone, independently of the drivers, so that a test can find a mistake in either. Each is
an I2cTarget or SpiTarget; `clock` gives seconds, for what takes time; `power_cycle()` takes the supply away and gives
it back.
"""
