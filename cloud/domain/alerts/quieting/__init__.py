"""When nothing is sent about alerts: quiet hours, and silences of rules and machines."""
