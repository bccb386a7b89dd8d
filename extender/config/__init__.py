"""One typed, validated configuration: a file, the environment and flags on top of it, and defaults for everything."""
