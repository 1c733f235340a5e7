"""One wpa_supplicant for each radio: client and hotspot through its control socket."""
