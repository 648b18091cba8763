"""How long a saved memory may be: known to the configuration, the rows and the database alike (SM-3)."""

CONTENT_MAX = 500  # code points
