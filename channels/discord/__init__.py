"""Discord, over discord.py: its gateway connection, its limits and its cache. What arrives is read raw, by us.

The library keeps its addresses in class attributes, so all accounts of one process speak to one API (see `client.speaking_to`).
"""
