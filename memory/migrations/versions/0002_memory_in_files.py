"""Memory in files: provenance of lines, coverage of the log, summary blocks, dreams, proposals, first-start questions."""

import sqlalchemy as sa
from alembic import op

from memory.columns import UtcTime

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "dreams",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("local_date", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("trigger", sa.Text(), nullable=False),
        sa.Column("batch_key", sa.Text(), server_default="", nullable=False),
        sa.Column("dates", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("old_hash", sa.Text(), server_default="", nullable=False),
        sa.Column("new_hash", sa.Text(), server_default="", nullable=False),
        sa.Column("staged", sa.Text(), nullable=True),
        sa.Column("plan", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("changes", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("diary", sa.Text(), server_default="", nullable=False),
        sa.Column("reason", sa.Text(), server_default="", nullable=False),
        sa.Column("calls", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("ended_at", UtcTime(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dreams")),
    )
    op.create_index(op.f("ix_dreams_scope_batch_key"), "dreams", ["scope", "batch_key"], unique=False)
    op.create_index(op.f("ix_dreams_scope_created_at"), "dreams", ["scope", "created_at"], unique=False)
    op.create_table(
        "file_changes",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("cause_id", sa.Text(), server_default="", nullable=False),
        sa.Column("before_hash", sa.Text(), server_default="", nullable=False),
        sa.Column("after_hash", sa.Text(), server_default="", nullable=False),
        sa.Column("revision", sa.Text(), server_default="", nullable=False),
        sa.Column("removed", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("added", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("undone_at", UtcTime(), nullable=True),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_file_changes")),
    )
    op.create_index(op.f("ix_file_changes_scope_created_at"), "file_changes", ["scope", "created_at"], unique=False)
    op.create_table(
        "file_lines",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), server_default="", nullable=False),
        sa.Column("sources", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("evidence", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("speakers", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("local_date", sa.Text(), server_default="", nullable=False),
        sa.Column("used_by", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_file_lines")),
        sa.UniqueConstraint("scope", "path", "hash", name=op.f("uq_file_lines_scope_path_hash")),
    )
    op.create_index(op.f("ix_file_lines_scope_local_date"), "file_lines", ["scope", "local_date"], unique=False)
    op.create_table(
        "line_bars",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("evidence", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("sources", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_line_bars")),
    )
    op.create_index(op.f("ix_line_bars_scope"), "line_bars", ["scope"], unique=False)
    op.create_table(
        "proposals",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), server_default="open", nullable=False),
        sa.Column("path", sa.Text(), server_default="", nullable=False),
        sa.Column("payload", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("run_id", sa.Text(), server_default="", nullable=False),
        sa.Column("conversation_id", sa.Text(), server_default="", nullable=False),
        sa.Column("person_id", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("expires_at", UtcTime(), nullable=False),
        sa.Column("decided_at", UtcTime(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_proposals")),
    )
    op.create_index(op.f("ix_proposals_scope_state"), "proposals", ["scope", "state"], unique=False)
    op.create_table(
        "scope_settings",
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("timezone", sa.Text(), server_default="", nullable=False),
        sa.Column("knowledge", sa.Boolean(), nullable=True),
        sa.Column("told", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("updated_at", UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("scope", name=op.f("pk_scope_settings")),
    )
    op.create_table(
        "onboarding",
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("asked", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("asked_on", sa.Text(), server_default="", nullable=False),
        sa.Column("answers", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("updated_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_onboarding_person_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("person_id", name=op.f("pk_onboarding")),
    )
    op.create_table(
        "coverage",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("first_seq", sa.BigInteger(), nullable=False),
        sa.Column("last_seq", sa.BigInteger(), nullable=False),
        sa.Column("local_date", sa.Text(), nullable=False),
        sa.Column("section", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), server_default="", nullable=False),
        sa.Column("fallback", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("stale", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(["conversation_id"], ["conversations.id"], name=op.f("fk_coverage_conversation_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_coverage")),
    )
    op.create_index(op.f("ix_coverage_conversation_id_last_seq"), "coverage", ["conversation_id", "last_seq"], unique=False)
    op.create_index(op.f("ix_coverage_scope_local_date"), "coverage", ["scope", "local_date"], unique=False)
    op.create_table(
        "summary_blocks",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("first_seq", sa.BigInteger(), nullable=False),
        sa.Column("last_seq", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("updated_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(["conversation_id"], ["conversations.id"], name=op.f("fk_summary_blocks_conversation_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_summary_blocks")),
        sa.UniqueConstraint("conversation_id", "last_seq", name=op.f("uq_summary_blocks_conversation_id_last_seq")),
    )
    op.add_column("messages", sa.Column("scope", sa.Text(), server_default="", nullable=False))
    op.add_column("messages", sa.Column("foreign_text", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.create_index(op.f("ix_messages_scope_seq"), "messages", ["scope", "seq"], unique=False)
    # Whose memory the talk so far belongs to: what was resolved from the place until now (WD-9). Guests and challenges have none.
    op.execute(
        "UPDATE messages SET scope = COALESCE((SELECT CASE"
        " WHEN c.space_id IS NOT NULL THEN 'spaces/' || c.space_id"
        " WHEN p.role <> 'guest' THEN p.scope END"
        " FROM conversations c LEFT JOIN people p ON p.id = c.person_id"
        " WHERE c.id = messages.conversation_id AND c.memory_on AND c.kind <> 'challenge'), '')"
    )
