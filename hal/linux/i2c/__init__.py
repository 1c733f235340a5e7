"""I2C buses of i2c-dev, their adapters, and transactions as SMBus calls."""
