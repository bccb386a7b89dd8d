"""What can be seen from outside: metrics, and the keys of log lines. No global state."""
