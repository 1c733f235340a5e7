"""Cameras of Video4Linux: the codec, the device and its frames."""
