"""Summaries by the helper model: days, weeks, months and years, rolling ones, and the daily files."""
