"""Saved memories with their ageing, journal and switches; characters of a chat, challenges."""

import sqlalchemy as sa
from alembic import op

from memory.columns import UtcTime

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "memory_journal",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("turn_id", sa.Text(), server_default="", nullable=False),
        sa.Column("attempt", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("run_id", sa.Text(), server_default="", nullable=False),
        sa.Column("seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("op", sa.Text(), nullable=False),
        sa.Column("memory_id", sa.BigInteger(), nullable=False),
        sa.Column("list_key", sa.Text(), nullable=False),
        sa.Column("cause_seq", sa.BigInteger(), nullable=True),
        sa.Column("before", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("after", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("after_revision", sa.Text(), server_default="", nullable=False),
        sa.Column("source_messages", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("conversation_id", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("undone_at", UtcTime(), nullable=True),
        sa.Column("void_at", UtcTime(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_memory_journal")),
    )
    op.create_index(op.f("ix_memory_journal_conversation_id"), "memory_journal", ["conversation_id"], unique=False)
    op.create_index(op.f("ix_memory_journal_list_key"), "memory_journal", ["list_key"], unique=False)
    op.create_index(op.f("ix_memory_journal_memory_id"), "memory_journal", ["memory_id"], unique=False)
    op.create_index(op.f("ix_memory_journal_run_id"), "memory_journal", ["run_id"], unique=False)
    op.create_index(op.f("ix_memory_journal_turn_id_attempt"), "memory_journal", ["turn_id", "attempt"], unique=False)
    op.create_table(
        "blacklist",
        sa.Column("space_id", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_blacklist_person_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name=op.f("fk_blacklist_space_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("space_id", "person_id", name=op.f("pk_blacklist")),
    )
    op.create_table(
        "clear_tokens",
        sa.Column("token_hash", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("list_key", sa.Text(), nullable=False),
        sa.Column("step", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("listed", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("expires_at", UtcTime(), nullable=False),
        sa.Column("used_at", UtcTime(), nullable=True),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_clear_tokens_person_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("pk_clear_tokens")),
    )
    op.create_table(
        "learning",
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("character_id", sa.Text(), nullable=False),
        sa.Column("learn", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("use", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.ForeignKeyConstraint(["character_id"], ["characters.id"], name=op.f("fk_learning_character_id")),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_learning_person_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("person_id", "character_id", name=op.f("pk_learning")),
    )
    op.create_table(
        "memories",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("list_kind", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=True),
        sa.Column("character_id", sa.Text(), nullable=True),
        sa.Column("space_id", sa.Text(), nullable=True),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("norm_hash", sa.Text(), nullable=False),
        sa.Column("pinned", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("protected", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("author_kind", sa.Text(), nullable=False),
        sa.Column("author_id", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("updated_at", UtcTime(), nullable=False),
        sa.Column("updated_by", sa.Text(), server_default="", nullable=False),
        sa.Column("tags", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("channel_ids", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("private_origin", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("origin_character", sa.Text(), server_default="", nullable=False),
        sa.Column("archived_at", UtcTime(), nullable=True),
        sa.Column("source", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("revision", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "(list_kind = 'global' and person_id is not null and character_id is null and space_id is null)"
            " or (list_kind = 'character' and person_id is not null and character_id is not null and space_id is null)"
            " or (list_kind = 'space' and person_id is null and character_id is not null and space_id is not null)",
            name=op.f("ck_memories_list"),
        ),
        sa.CheckConstraint("length(content) between 1 and 500", name=op.f("ck_memories_content")),
        sa.CheckConstraint("not pinned or protected", name=op.f("ck_memories_pinned")),
        sa.ForeignKeyConstraint(["character_id"], ["characters.id"], name=op.f("fk_memories_character_id")),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_memories_person_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name=op.f("fk_memories_space_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_memories")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_memories_person_id_list_kind_character_id"), "memories", ["person_id", "list_kind", "character_id"], unique=False)
    op.create_index(op.f("ix_memories_space_id_character_id"), "memories", ["space_id", "character_id"], unique=False)
    op.create_table(
        "space_learning",
        sa.Column("space_id", sa.Text(), nullable=False),
        sa.Column("character_id", sa.Text(), nullable=False),
        sa.Column("learn", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("use", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.ForeignKeyConstraint(["character_id"], ["characters.id"], name=op.f("fk_space_learning_character_id")),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name=op.f("fk_space_learning_space_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("space_id", "character_id", name=op.f("pk_space_learning")),
    )
    op.create_table(
        "attempts",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("challenge", sa.Text(), server_default="", nullable=False),
        sa.Column("number", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("turns", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("score", sa.BigInteger(), nullable=True),
        sa.Column("verdict", sa.Text(), server_default="", nullable=False),
        sa.Column("started_at", UtcTime(), nullable=False),
        sa.Column("ended_at", UtcTime(), nullable=True),
        sa.ForeignKeyConstraint(["conversation_id"], ["conversations.id"], name=op.f("fk_attempts_conversation_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempts")),
    )
    op.create_index(op.f("ix_attempts_conversation_id"), "attempts", ["conversation_id"], unique=False)
    op.create_table(
        "deep_reading",
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("read_seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("ran_at", UtcTime(), nullable=True),
        sa.ForeignKeyConstraint(["conversation_id"], ["conversations.id"], name=op.f("fk_deep_reading_conversation_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("conversation_id", name=op.f("pk_deep_reading")),
    )
    op.create_table(
        "memory_decay",
        sa.Column("memory_id", sa.BigInteger(), nullable=False),
        sa.Column("unused_days", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("dormant", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("last_tick_day", sa.Date(), nullable=False),
        sa.Column("last_matched_at", UtcTime(), nullable=True),
        sa.ForeignKeyConstraint(["memory_id"], ["memories.id"], name=op.f("fk_memory_decay_memory_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("memory_id", name=op.f("pk_memory_decay")),
    )
    op.add_column("conversations", sa.Column("characters", sa.JSON(none_as_null=True), nullable=True))
    op.add_column("conversations", sa.Column("challenge", sa.Text(), server_default="", nullable=False))
    op.add_column("people", sa.Column("share_private", sa.Boolean(), server_default=sa.false(), nullable=False))
