"""Durable out: replies as parts, the outbox that sends them, and the signs of a turn that runs."""
