"""A simulated power sensor in the supply line of the simulated devices."""
