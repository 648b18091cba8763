"""How much the demo model holds: for the child that runs it, its client, and the configuration, which loads neither. Nothing is imported here."""

CONTEXT_TOKENS = 4096
"""Of each request. The child takes the memory for it at its start, 90 MB for each slot."""
