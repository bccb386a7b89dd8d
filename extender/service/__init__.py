"""Everything put together: what is watched reaches belief, what is asked is answered, what is decided is written."""
