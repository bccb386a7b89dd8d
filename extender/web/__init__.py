"""The HTTP server: bytes to questions, answers to bytes. Nothing is decided here."""
