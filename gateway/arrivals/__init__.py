"""Durable in: what platforms deliver, whether it is taken in, and what becomes of it."""
