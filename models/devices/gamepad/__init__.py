"""Input controller `gamepad`: a gamepad or joystick connected to this computer."""
