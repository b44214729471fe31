"""`onejob serve`: the HTTP API on this machine, for development."""
