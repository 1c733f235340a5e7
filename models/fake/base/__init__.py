"""A simulated base on two rows of wheels: its own, or those of configured motors."""
