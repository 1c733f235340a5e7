"""The state machine of provisioning: when to join which wifi network, run the hotspot, or reboot. Pure."""
