"""Records in one SQLite file: durable, safe across processes, no server."""
