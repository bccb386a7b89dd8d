"""A pretend cluster: an API server in memory, the controllers that matter to claims, and a stand-in scheduler."""
