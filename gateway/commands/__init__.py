"""The commands that people give in a chat: the one table (section 9 of the workspace rules) and its handlers. What others use of it stands here."""

from gateway.commands.asked import Answer, Asked
from gateway.commands.carry_out import Commands
from gateway.commands.table import TABLE, needed_role, opens_groups, usable_by
from gateway.commands.talk import explain

__all__ = ["TABLE", "Answer", "Asked", "Commands", "explain", "needed_role", "opens_groups", "usable_by"]
