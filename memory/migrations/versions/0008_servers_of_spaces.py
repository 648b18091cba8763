"""Which server a channel or thread with a memory of its own belongs to."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("spaces", sa.Column("server_id", sa.Text(), server_default="", nullable=False))
