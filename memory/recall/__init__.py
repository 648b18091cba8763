"""Recall and summaries: chunks of the talk and what stands for what was said."""
