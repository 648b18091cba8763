"""Alembic's entry: always on a connection handed in by `memory.migrate`, in its transaction."""

from alembic import context

from memory.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True)
context.run_migrations()
