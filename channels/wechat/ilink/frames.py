"""What the vendor's server says, as it is parsed at the edge (WX-28, WX-32, WX-33). A null is an absent field; unknown fields are ignored."""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, Field

from channels.frame import Frame, Id


def _as_messages(value: object) -> object:
    """What is no message at all must not cost the others either (CH-4)."""
    if not isinstance(value, list):
        return value
    items = cast("list[object]", value)
    return [cast("dict[str, Any]", item) if isinstance(item, dict) else {"raw": item} for item in items]


class Kind(IntEnum):
    """The `type` of an item."""

    NOTHING = 0
    TEXT = 1
    IMAGE = 2
    VOICE = 3
    FILE = 4
    VIDEO = 5
    TOOL_CALL = 11  # marks of a bot's tools, in newer clients [unverified]
    TOOL_RESULT = 12


class Media(Frame):
    encrypt_query_param: str = ""
    aes_key: str = ""
    full_url: str = ""


class TextItem(Frame):
    text: str = ""


class ImageItem(Frame):
    media: Media = Media()
    aeskey: str = ""
    hd_size: int = 0
    mid_size: int = 0


class VoiceItem(Frame):
    media: Media = Media()
    encode_type: int = 0
    playtime: int = 0  # milliseconds
    text: str = ""


class FileItem(Frame):
    media: Media = Media()
    file_name: str = ""
    len: Id = ""


class VideoItem(Frame):
    media: Media = Media()
    video_size: int = 0
    play_length: int = 0


class PartialText(Frame):
    start: str = ""
    end: str = ""


class Reference(Frame):
    title: str = ""
    svr_id: Id = ""
    message_item: Item | None = None
    partial_text: PartialText | None = None


class Item(Frame):
    type: int = 0
    msg_id: Id = ""
    ref_msg: Reference | None = None
    text_item: TextItem = TextItem()
    image_item: ImageItem = ImageItem()
    voice_item: VoiceItem = VoiceItem()
    file_item: FileItem = FileItem()
    video_item: VideoItem = VideoItem()


class Message(Frame):
    from_user_id: str = Field(min_length=1)
    to_user_id: str = ""
    message_id: Id = ""
    seq: int | None = None
    create_time_ms: int = 0
    delete_time_ms: int = 0
    group_id: str = ""
    message_type: int = 1
    item_list: tuple[Item, ...] = ()
    context_token: str = ""


class Answer(Frame):
    """What every answer has: success is `ret` and `errcode` both absent or 0, whatever the HTTP status says (WX-13)."""

    ret: int = 0
    errcode: int = 0
    errmsg: str = ""

    @property
    def code(self) -> int:
        return self.errcode or self.ret


class Updates(Answer):
    """`msgs` stay raw: one that cannot be read must not cost the others (CH-4)."""

    msgs: Annotated[tuple[dict[str, Any], ...], BeforeValidator(_as_messages)] = ()
    get_updates_buf: str = ""
    longpolling_timeout_ms: int = 0


class Shown(Answer):
    message_id: Id = ""


class Config(Answer):
    typing_ticket: str = ""
    context_token: str = ""


class UploadPlace(Answer):
    upload_full_url: str = ""
    upload_param: str = ""


class Code(Answer):
    qrcode: str = ""
    qrcode_img_content: str = ""


class CodeStatus(Answer):
    status: str = "wait"
    redirect_host: str = ""
    bot_token: str = ""
    ilink_bot_id: str = ""
    baseurl: str = ""
    ilink_user_id: str = ""
