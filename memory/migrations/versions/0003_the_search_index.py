"""The search index: chunks of files, their words and vectors, calibrations of embedders, collections."""

import sqlalchemy as sa
from alembic import op

from memory.columns import UtcTime

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "file_chunks",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("area", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("first_line", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("last_line", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("heading", sa.Text(), server_default="", nullable=False),
        sa.Column("text", sa.Text(), server_default="", nullable=False),
        sa.Column("text_hash", sa.Text(), nullable=False),
        sa.Column("local_date", sa.Text(), server_default="", nullable=False),
        sa.Column("lore", sa.Text(), server_default="", nullable=False),
        sa.Column("words", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_file_chunks")),
        sa.UniqueConstraint("key", name=op.f("uq_file_chunks_key")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_file_chunks_area_id"), "file_chunks", ["area", "id"], unique=False)
    op.create_index(op.f("ix_file_chunks_scope_path"), "file_chunks", ["scope", "path"], unique=False)
    op.create_table(
        "file_passages",
        sa.Column("chunk_id", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("begin", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("end", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("text_hash", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), server_default="", nullable=False),
        sa.Column("collection", sa.Text(), server_default="", nullable=False),
        sa.ForeignKeyConstraint(["chunk_id"], ["file_chunks.id"], name=op.f("fk_file_passages_chunk_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("chunk_id", "position", name=op.f("pk_file_passages")),
    )
    op.create_index(op.f("ix_file_passages_collection"), "file_passages", ["collection"], unique=False)
    op.create_index(op.f("ix_file_passages_text_hash"), "file_passages", ["text_hash"], unique=False)
    op.create_table(
        "indexed_files",
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("stamp", sa.Text(), server_default="", nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("chunks", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("indexed_at", UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("scope", "path", name=op.f("pk_indexed_files")),
    )
    op.create_table(
        "vectors",
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("text_hash", sa.Text(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("fingerprint", "text_hash", name=op.f("pk_vectors")),
    )
    op.create_table(
        "calibrations",
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("dimension", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("background", sa.Text(), nullable=False),
        sa.Column("documents_mean", sa.LargeBinary(), nullable=False),
        sa.Column("questions_mean", sa.LargeBinary(), nullable=False),
        sa.Column("best", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("made_at", UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("fingerprint", name=op.f("pk_calibrations")),
    )
    op.create_table(
        "collections",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("dimension", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("generation", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("made_at", UtcTime(), nullable=False),
        sa.Column("retired_at", UtcTime(), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_collections")),
    )
    if op.get_context().dialect.name == "sqlite":
        # Our tokens are whole words already: the plain tokeniser parts them at blanks and leaves everything beyond ASCII alone. No positions are
        # needed, for no question asks for a phrase.
        op.execute("CREATE VIRTUAL TABLE file_words USING fts5(tokens, tokenize='ascii', detail=none)")
    else:
        op.execute("CREATE TABLE file_words (rowid BIGINT PRIMARY KEY, tokens TSVECTOR NOT NULL)")
        op.execute("CREATE INDEX ix_file_words_tokens ON file_words USING gin (tokens)")
