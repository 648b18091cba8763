"""Summary entries of a chat (RS-81 to RS-95): asked for, made, shown, merged, and what stands in their place."""
