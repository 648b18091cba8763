"""What happens to messages after they came: edited, deleted (CH-2)."""

from __future__ import annotations

from dataclasses import replace

import sqlalchemy as sa

from channels.message import InboundEvent
from gateway import trimming
from gateway.arrivals import early_edits, inbox
from gateway.arrivals.admission import would_be_heard
from gateway.arrivals.received import Received, Setting, noted
from gateway.arrivals.talk_log import ref
from memory import conversations, message_changes


def take_edit(connection: sa.Connection, event: InboundEvent, setting: Setting) -> Received:
    """History is corrected; a turn that has not begun reads the new words, a running or finished one is not answered again (CH-2). Words older than
    those that are known change nothing: edits may come in any order, again, and before their message."""
    found = conversations.by_ref(connection, **ref(event))
    if found is None and would_be_heard(connection, event, setting):
        early_edits.keep(connection, event, setting.now)
    if found is None or found.state != "live":
        return noted(connection, event, setting, found)
    if not inbox.reword(connection, found.id, event.text, event.platform_ts or event.received_at):
        return replace(noted(connection, event, setting, found), touched="")
    if event.text != found.text:
        message_changes.correct(connection, found, event.text, setting.now)
        trimming.changed(connection, found.conversation_id, found.seq, found.seq, setting.now)
    return noted(connection, event, setting, found)


def take_deletion(connection: sa.Connection, event: InboundEvent, setting: Setting) -> Received:
    """The words leave the log; a waiting message is dropped, a running turn goes on (CH-2)."""
    found = conversations.by_ref(connection, **ref(event))
    if found is not None:
        message_changes.forget(connection, found.id)
        trimming.changed(connection, found.conversation_id, found.seq, found.seq, setting.now)
        waiting = inbox.waiting_of_message(connection, found.id)
        inbox.finish(connection, waiting, now=setting.now, state="ignored", rule="deleted")
        inbox.forget_words(connection, found.id)
    early_edits.drop(connection, event)
    return noted(connection, event, setting, found)
