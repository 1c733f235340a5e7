"""Commands for microcontrollers: try, package and flash the micro server."""
