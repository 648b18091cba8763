"""What is kept: messages, files, memories, summaries, the index, and the database itself. Imports none of ours."""
