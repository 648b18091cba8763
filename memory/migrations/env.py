"""Alembic's entry: always on a connection handed in by `memory.migrate`, in its transaction."""

from alembic import context

from memory import file_schema, index_schema, pairing_schema, recall_schema, saved_schema, schema, task_schema
from memory.columns import metadata

TABLES = (schema, file_schema, index_schema, task_schema, pairing_schema, saved_schema, recall_schema)
assert all(tables.metadata is metadata for tables in TABLES), "one metadata holds every table"

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True)
context.run_migrations()
