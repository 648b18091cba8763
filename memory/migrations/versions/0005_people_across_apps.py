"""Pairing codes, managers of spaces, accounts on their way to one person; whether a group wants to be mentioned."""

import sqlalchemy as sa
from alembic import op

from memory.columns import UtcTime

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("spaces", sa.Column("mention", sa.Text(), server_default="", nullable=False))
    op.create_table(
        "pairings",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("platform_user_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), server_default="", nullable=False),
        sa.Column("language", sa.Text(), server_default="", nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("code_hash", sa.Text(), nullable=False),
        sa.Column("told_at", UtcTime(), nullable=False),
        sa.Column("expires_at", UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_pairings")),
        sa.UniqueConstraint("channel", "account", "platform_user_id", name=op.f("uq_pairings_channel_account_platform_user_id")),
    )
    op.create_index(op.f("ix_pairings_code_hash"), "pairings", ["code_hash"], unique=False)
    op.create_table(
        "space_managers",
        sa.Column("space_id", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_space_managers_person_id_people"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name=op.f("fk_space_managers_space_id_spaces"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("space_id", "person_id", name=op.f("pk_space_managers")),
    )
    op.create_index(op.f("ix_space_managers_person_id"), "space_managers", ["person_id"], unique=False)
    op.create_table(
        "account_links",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("code_hash", sa.Text(), nullable=False),
        sa.Column("asker_id", sa.Text(), nullable=False),
        sa.Column("asker_chat", sa.Text(), nullable=False),
        sa.Column("giver_id", sa.Text(), nullable=True),
        sa.Column("giver_chat", sa.Text(), server_default="", nullable=False),
        sa.Column("asker_agreed", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("giver_agreed", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("expires_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(["asker_id"], ["people.id"], name=op.f("fk_account_links_asker_id_people"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["giver_id"], ["people.id"], name=op.f("fk_account_links_giver_id_people"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_account_links")),
    )
    for column in ("code_hash", "asker_id", "giver_id"):
        op.create_index(op.f(f"ix_account_links_{column}"), "account_links", [column], unique=False)
