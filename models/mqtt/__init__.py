"""Service `mqtt`: publishes readings and states to an MQTT broker, and obeys commands that arrive there."""
