"""Reminders and repeated tasks: their rules, their plan, their runs."""
