"""The API server: raw lists, watches and writes. The only package that imports ``kubernetes``, for credentials alone.

Nothing here raises for what the network or the API server does: every answer, refusal and silence is a value.
"""
