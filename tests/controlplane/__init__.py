"""A real control plane on loopback, for tests."""
