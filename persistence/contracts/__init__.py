"""The ports of persistence: records and protocols, nothing that does anything."""
