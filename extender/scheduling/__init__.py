"""What the scheduler is told: use cases over belief. Pure: values in, values out; no I/O, clock or log."""
