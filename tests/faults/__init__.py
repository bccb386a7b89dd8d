"""A real control plane on which everything goes wrong that can, and what must hold all the same."""
