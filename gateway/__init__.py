"""Composition, lifetime, dispatch, delivery, people, jobs, HTTP and the command line."""
