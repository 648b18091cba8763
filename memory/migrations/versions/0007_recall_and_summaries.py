"""Chunks of the talk, summaries of every kind, links between chats."""

import sqlalchemy as sa
from alembic import op

from memory.columns import UtcTime

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "chat_links",
        sa.Column("reader_id", sa.Text(), nullable=False),
        sa.Column("source_id", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("revoked_at", UtcTime(), nullable=True),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_chat_links_person_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["reader_id"], ["conversations.id"], name=op.f("fk_chat_links_reader_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["source_id"], ["conversations.id"], name=op.f("fk_chat_links_source_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("reader_id", "source_id", name=op.f("pk_chat_links")),
    )
    op.create_table(
        "message_chunks",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("area", sa.Text(), nullable=False),
        sa.Column("audience_people", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("audience_personas", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("first_seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("last_seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("state", sa.Text(), server_default="live", nullable=False),
        sa.Column("origin", sa.Text(), server_default="native", nullable=False),
        sa.Column("importer", sa.Text(), server_default="", nullable=False),
        sa.Column("text", sa.Text(), server_default="", nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("names", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("messages", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("words", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("failure", sa.Text(), server_default="", nullable=False),
        sa.Column("failures", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("retry_at", UtcTime(), nullable=True),
        sa.Column("said_from", UtcTime(), nullable=False),
        sa.Column("said_to", UtcTime(), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(["conversation_id"], ["conversations.id"], name=op.f("fk_message_chunks_conversation_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_message_chunks")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_message_chunks_area_id"), "message_chunks", ["area", "id"], unique=False)
    op.create_index(op.f("ix_message_chunks_conversation_id_last_seq"), "message_chunks", ["conversation_id", "last_seq"], unique=False)
    op.create_table(
        "summaries",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("audience", sa.Text(), server_default="", nullable=False),
        sa.Column("audience_people", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("audience_personas", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("state", sa.Text(), server_default="active", nullable=False),
        sa.Column("hand_edited", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("stale", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("title", sa.Text(), server_default="", nullable=False),
        sa.Column("text", sa.Text(), server_default="", nullable=False),
        sa.Column("details", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("first_seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("last_seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("local_date", sa.Text(), server_default="", nullable=False),
        sa.Column("part", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("zone", sa.Text(), server_default="", nullable=False),
        sa.Column("rollover_hour", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("failed_days", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("fingerprint", sa.Text(), server_default="", nullable=False),
        sa.Column("model", sa.Text(), server_default="", nullable=False),
        sa.Column("origin", sa.Text(), server_default="", nullable=False),
        sa.Column("tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("updated_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(["conversation_id"], ["conversations.id"], name=op.f("fk_summaries_conversation_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_summaries")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_summaries_conversation_id_kind_state"), "summaries", ["conversation_id", "kind", "state"], unique=False)
    op.create_index(op.f("ix_summaries_conversation_id_local_date"), "summaries", ["conversation_id", "local_date"], unique=False)
    op.create_table(
        "chunk_messages",
        sa.Column("chunk_id", sa.BigInteger(), nullable=False),
        sa.Column("message_seq", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["chunk_id"], ["message_chunks.id"], name=op.f("fk_chunk_messages_chunk_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("chunk_id", "message_seq", name=op.f("pk_chunk_messages")),
    )
    op.create_index(op.f("ix_chunk_messages_message_seq"), "chunk_messages", ["message_seq"], unique=False)
    op.create_table(
        "chunk_passages",
        sa.Column("chunk_id", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("begin", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("end", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("text_hash", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), server_default="", nullable=False),
        sa.Column("collection", sa.Text(), server_default="", nullable=False),
        sa.ForeignKeyConstraint(["chunk_id"], ["message_chunks.id"], name=op.f("fk_chunk_passages_chunk_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("chunk_id", "position", name=op.f("pk_chunk_passages")),
    )
    op.create_index(op.f("ix_chunk_passages_collection"), "chunk_passages", ["collection"], unique=False)
    op.create_index(op.f("ix_chunk_passages_text_hash"), "chunk_passages", ["text_hash"], unique=False)
    op.create_table(
        "summary_inputs",
        sa.Column("summary_id", sa.BigInteger(), nullable=False),
        sa.Column("input_id", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["input_id"], ["summaries.id"], name=op.f("fk_summary_inputs_input_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["summary_id"], ["summaries.id"], name=op.f("fk_summary_inputs_summary_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("summary_id", "input_id", name=op.f("pk_summary_inputs")),
    )
    op.create_index(op.f("ix_summary_inputs_input_id"), "summary_inputs", ["input_id"], unique=False)
    op.create_table(
        "summary_sources",
        sa.Column("summary_id", sa.BigInteger(), nullable=False),
        sa.Column("message_seq", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["summary_id"], ["summaries.id"], name=op.f("fk_summary_sources_summary_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("summary_id", "message_seq", name=op.f("pk_summary_sources")),
    )
    op.create_index(op.f("ix_summary_sources_message_seq"), "summary_sources", ["message_seq"], unique=False)
    op.add_column("conversations", sa.Column("mode", sa.Text(), server_default="", nullable=False))
    op.add_column("conversations", sa.Column("record", sa.Text(), server_default="", nullable=False))
    op.add_column("conversations", sa.Column("recall_on", sa.Boolean(), nullable=True))
    op.add_column("conversations", sa.Column("settings", sa.JSON(none_as_null=True), nullable=True))
    op.add_column("turns", sa.Column("recalled", sa.JSON(none_as_null=True), nullable=True))
    if op.get_context().dialect.name == "sqlite":
        op.execute("CREATE VIRTUAL TABLE message_words USING fts5(tokens, tokenize='ascii', detail=none)")
    else:
        op.execute("CREATE TABLE message_words (rowid BIGINT PRIMARY KEY, tokens TSVECTOR NOT NULL)")
        op.execute("CREATE INDEX ix_message_words_tokens ON message_words USING gin (tokens)")
