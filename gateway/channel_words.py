"""Why an account of a chat app is not well, in a sentence that says what to do: adapters name the kind of fault, its particulars are for the log."""

from __future__ import annotations

from gateway.language import say

_REASONS = {
    "unreachable": "channel_unreachable",
    "broken": "channel_broken",
    "pause": "channel_pause",
    "other_program": "channel_other_program",
    "token": "channel_token",
    "intent": "channel_intent",
    "no_api": "channel_no_api",
    "fault": "channel_fault",
    "no_webhook_url": "channel_no_webhook_url",
    "too_many_servers": "channel_too_many_servers",
    "scan": "channel_scan",
    "scan_again": "channel_scan_again",
    "odd_host": "channel_odd_host",
    "outdated": "channel_outdated",
    "bad_app": "channel_bad_app",
    "bad_bot": "channel_bad_bot",
    "bad_key": "channel_bad_key",
}
_NAMES = {"telegram": "Telegram", "discord": "Discord"}
_APPS = {
    "wechat_ilink": "app_wechat_ilink",
    "wechat_official": "app_wechat_official",
    "wecom": "app_wecom",
}


def reason(channel: str, code: str, text: str, language: str = "en") -> str:
    """The sentence for a fault `code` of `channel`; `text` where there is no such code: what raised it has said it plainly."""
    if code not in _REASONS:
        return text
    app = say(language, _APPS[channel]) if channel in _APPS else _NAMES.get(channel, channel)
    return say(language, _REASONS[code], app=app)
