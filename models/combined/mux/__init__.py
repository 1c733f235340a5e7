"""Input controller `mux`: several input controllers as one."""
