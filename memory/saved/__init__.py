"""Saved memories: single facts about people and places, how they age, and who may see them."""
