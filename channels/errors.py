"""What an adapter raises, split by what the caller should do.

    ChannelError                  anything this package raises on purpose
    ├── ConnectionLost            try again: the supervisor backs off and runs the channel anew
    ├── CredentialRefused         ask a person: no further attempt until the operator acts (CH-21, CH-212); the text says what to do
    ├── UnreadableEvent           give up on this item: stored raw as `unknown` (CH-4)
    └── AttachmentRefused         give up on this file: a stand-in says so (CH-7)

The text may hold particulars, for the log. `code` names a kind of fault of which the gateway has a sentence for people, in their language:
unreachable, broken, pause, other_program, token, intent or no_api; no_webhook_url and too_many_servers; scan, scan_again, odd_host, outdated,
bad_app, bad_bot and bad_key. Without one the text itself has to be plain.
"""


class ChannelError(Exception):
    def __init__(self, text: str = "", *, code: str = "") -> None:
        super().__init__(text)
        self.code = code


class ConnectionLost(ChannelError):
    pass


class CredentialRefused(ChannelError):
    pass


class UnreadableEvent(ChannelError):
    pass


class AttachmentRefused(ChannelError):
    pass
