"""Files that came with messages: kept under random names, typed by their bytes, shown to the model within limits (CH-7, WO-63)."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from agent.llm.port import Image
from channels.message import Attachment, clean, from_json, safe_name
from gateway.language import say
from gateway.picture_size import SIDE_MAX, picture_size
from memory.database import Database
from memory.extract import shortened
from memory.ids import opaque
from memory.schema import attachments

TEXT_MAX = 30_000  # bytes of a text file that join the prompt
WORDS_MAX = 8_000  # characters of one that are kept with its message, to be recalled and summarised
IMAGES_MAX = 4  # pictures of one message that go to a model
IMAGE_MAX = 8_000_000  # bytes of one

# The first bytes say what a file is; the sender's word does not count.
_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"OggS", "audio/ogg"),
    (b"ID3", "audio/mpeg"),
)
UNKNOWN = "application/octet-stream"  # bytes that say nothing about themselves
SEEN = ("image/png", "image/jpeg", "image/gif", "image/webp")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    id: str
    kind: str  # image, text, audio, file
    name: str
    mime: str
    size: int
    path: str

    @property
    def attachment(self) -> Attachment:
        """As a file of a message."""
        return Attachment(kind=self.kind, name=self.name, mime=self.mime, size=self.size, fetch_ref=self.id, stored_path=self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a model gets of a message's files. `words`: a line or a marked text for each; `texts`: those of `words` that are texts of files, whole."""

    words: str = ""
    texts: tuple[str, ...] = ()
    images: tuple[Image, ...] = ()


def sniff(data: bytes) -> str:
    """The media type of `data` by its bytes: a known signature, else UTF-8 text, else unknown."""
    for signature, mime in _SIGNATURES:
        if data.startswith(signature):
            return mime
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return UNKNOWN
    return "text/plain" if "\x00" not in text else UNKNOWN


def kind_of(mime: str) -> str:
    main = mime.partition("/")[0]
    return main if main in ("image", "text", "audio") else "file"


class Attachments:
    """The folder of files and its rows. File work runs in threads."""

    def __init__(self, folder: Path, db: Database) -> None:
        self.folder = folder
        self._db = db

    async def keep(self, data: bytes, *, name: str, person_id: str, now: datetime) -> StoredFile:
        """Store `data` and return its row. StoreUnavailable or OSError when it cannot be kept."""
        mime = sniff(data)
        file_id = opaque("a")
        path = f"{now:%Y-%m}/{secrets.token_hex(16)}"
        await asyncio.to_thread(_write, self.folder / path, data)
        stored = StoredFile(id=file_id, kind=kind_of(mime), name=safe_name(name), mime=mime, size=len(data), path=path)
        values: dict[str, Any] = {
            "id": stored.id, "kind": stored.kind, "name": stored.name, "mime": mime, "size": stored.size, "path": path,
            "person_id": person_id, "sha256": hashlib.sha256(data).hexdigest(), "created_at": now,
        }  # fmt: skip
        await self._db.write(lambda connection: connection.execute(sa.insert(attachments), values))
        return stored

    async def find(self, file_id: str, person_id: str) -> StoredFile | None:
        """A file of this person's; None for anybody else's (WP-18)."""
        query = sa.select(*(attachments.c[name] for name in StoredFile.__dataclass_fields__)).where(
            attachments.c.id == file_id, attachments.c.person_id == person_id
        )
        row = await self._db.read(lambda connection: connection.execute(query).mappings().one_or_none())
        return StoredFile(**row) if row else None

    def path_of(self, stored: StoredFile) -> Path:
        """Where the bytes lie; ValueError when the stored path leads outside the folder."""
        path = (self.folder / stored.path).resolve()
        if not path.is_relative_to(self.folder.resolve()):
            raise ValueError(f"attachment {stored.id} lies outside its folder")
        return path

    async def read(self, attachment: Attachment) -> bytes:
        """The bytes of a stored file. OSError when they are gone, or the path leads outside the folder."""
        path = (self.folder / attachment.stored_path).resolve()
        if not attachment.stored_path or not path.is_relative_to(self.folder.resolve()):
            raise FileNotFoundError(attachment.name)
        return await asyncio.to_thread(path.read_bytes)

    async def words(self, item: Mapping[str, Any]) -> str:
        """What a readable text file of a message says, as far as it is kept with the message; empty for any other file (RS-23)."""
        if str(item.get("mime")) != "text/plain" or not item.get("stored_path") or int(item.get("size") or 0) > TEXT_MAX:
            return ""
        try:
            data = await self.read(from_json(Attachment, dict(item)))
        except OSError:
            return ""
        return shortened(clean(data.decode("utf-8", errors="replace")).strip(), WORDS_MAX)

    async def for_prompt(self, items: Iterable[Mapping[str, Any]], *, sees_images: bool, language: str) -> Shown:
        """Text files as marked text, pictures when the model sees them, else a stand-in for each."""
        words: list[str] = []
        texts: list[str] = []
        images: list[Image] = []
        for item in items:
            path = self.folder / str(item.get("stored_path", ""))
            name, mime, size = str(item["name"]), str(item["mime"]), int(item["size"])
            readable = bool(item.get("stored_path")) and await asyncio.to_thread(path.is_file)
            if item.get("transcript"):
                words.append(say(language, "voice_note", text=item["transcript"]))
            elif not readable:
                words.append(say(language, "stand_in_failed", kind=item["kind"], name=name))
            elif mime == "text/plain" and size <= TEXT_MAX:
                text = clean((await asyncio.to_thread(path.read_bytes)).decode("utf-8", errors="replace"))
                mark = f"{name} {hashlib.blake2b(text.encode(), digest_size=4).hexdigest()}"  # which its writer cannot forge inside it (RL-30)
                texts.append(f"{say(language, 'file_begins', name=mark)}\n{text}\n{say(language, 'file_ends', name=mark)}")
                words.append(texts[-1])
            elif sees_images and mime in SEEN and size <= IMAGE_MAX and len(images) < IMAGES_MAX:
                data = await asyncio.to_thread(path.read_bytes)
                width, height = picture_size(data) or (0, 0)
                if max(width, height) > SIDE_MAX:
                    words.append(say(language, "stand_in_vast", kind=item["kind"], name=name, width=width, height=height))
                    continue
                images.append(Image(mime=mime, data=base64.b64encode(data).decode("ascii")))
            else:
                words.append(say(language, "stand_in_attachment", kind=item["kind"], name=name))
        return Shown(words="\n".join(words), texts=tuple(texts), images=tuple(images))


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    partial = path.with_suffix(".part")
    partial.write_bytes(data)
    partial.chmod(0o600)
    partial.replace(path)
