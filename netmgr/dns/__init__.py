"""DNS: the answers of the hotspot, and the name servers of the system."""
