"""Vectors: where they come from, who makes them, and how one embedder follows another."""
