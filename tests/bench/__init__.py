"""Benches: tables with ratios measured in one run, never timed tests (`make bench`)."""
