"""The scheduler's verbs over HTTP: latencies, memory, cold start and load, beside servers that think of nothing."""
