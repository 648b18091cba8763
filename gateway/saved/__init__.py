"""Saved memories while the gateway runs: what a reply is given, what the model writes, what people see and settle; deep memory."""
