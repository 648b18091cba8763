"""Scheduled tasks and reminders."""

import sqlalchemy as sa
from alembic import op

from memory.columns import UtcTime

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "tasks",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), server_default="", nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("silent", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("rule", sa.Text(), server_default="", nullable=False),
        sa.Column("once_at", UtcTime(), nullable=True),
        sa.Column("timezone", sa.Text(), server_default="", nullable=False),
        sa.Column("language", sa.Text(), server_default="", nullable=False),
        sa.Column("state", sa.Text(), server_default="active", nullable=False),
        sa.Column("fault", sa.Text(), server_default="", nullable=False),
        sa.Column("next_run", UtcTime(), nullable=True),
        sa.Column("run_slot", UtcTime(), nullable=True),
        sa.Column("run_turn", sa.Text(), server_default="", nullable=False),
        sa.Column("run_key", sa.Text(), server_default="", nullable=False),
        sa.Column("run_stored", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("last_run", UtcTime(), nullable=True),
        sa.Column("last_result", sa.Text(), server_default="", nullable=False),
        sa.Column("last_error", sa.Text(), server_default="", nullable=False),
        sa.Column("runs", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("skipped", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("missed", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("updated_at", UtcTime(), nullable=False),
        sa.Column("ended_at", UtcTime(), nullable=True),
        sa.Column("seen_at", UtcTime(), nullable=True),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_tasks_person_id_people"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tasks")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_tasks_address"), "tasks", ["address"], unique=False)
    op.create_index(op.f("ix_tasks_person_id"), "tasks", ["person_id"], unique=False)
    op.create_index(op.f("ix_tasks_state_next_run"), "tasks", ["state", "next_run"], unique=False)
