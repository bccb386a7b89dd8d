"""A small API server in memory that answers like the real one, as far as clients that allocate devices can tell."""
