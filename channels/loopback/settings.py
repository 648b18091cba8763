"""What the fake platform can do (CH-8): everything, so that a test of anything finds it."""

from __future__ import annotations

from channels.port import Capabilities, Markup, TextUnit

CAPABILITIES = Capabilities(
    text_unit=TextUnit.UTF16,
    text_max=4096,
    markup=Markup.MARKDOWN,
    edit_interval_s=0.05,
    group_edit_interval_s=0.1,
    typing_refresh_s=4.0,
    threads=True,
    reactions=True,
    buttons=True,
    media_max_bytes=10_000_000,
    documents=True,
    resend_key_s=120.0,
    reconcile=True,
    hold_s=0.05,
)
