"""One turn of thought: a prompt in, deltas, tool calls and a reply out. Knows no platform."""
