"""Models on the simulated bench: one for every component API, all called `fake`."""
