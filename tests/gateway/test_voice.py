"""Voice notes: written down by whoever was configured, kept with the file, told to the model as the person's words; else they are named (CH-7)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent.errors import TranscriptionFailed
from agent.llm.transcription import EndpointTranscriber
from channels.loopback import LoopbackPlatform
from gateway.language import say
from tests.peers.model.replies import error
from tests.peers.model.server import FakeModel
from tests.talks import Talk, asked, model, talk

SOUND = b"OggS" + b"\x00" * 60
VOICE = {"kind": "audio", "name": "voice.ogg", "mime": "audio/ogg", "size": len(SOUND), "ref": "v1"}


@asynccontextmanager
async def speaking(folder: Path, url: str = "") -> AsyncGenerator[Talk]:
    platform = LoopbackPlatform(hold_s=0.05, files={"v1": SOUND})
    voice = {"provider": "openai", "base_url": url, "model": "whisper-1", "api_key": "sk-voice"} if url else {"provider": "none"}
    async with talk(
        folder, model(lambda request: f"Re: {asked(request)}"), platform=platform, config={"transcription": voice}
    ) as chat:
        yield chat


@pytest.mark.rule("CH-7")
@pytest.mark.parametrize(("words", "language"), [("please call the dentist", "en"), ("歯医者に電話して", "ja"), ("请给牙医打电话", "zh")])
async def test_a_voice_note_reaches_the_model_as_words_and_is_written_down_once(tmp_path: Path, words: str, language: str) -> None:
    async with FakeModel() as server:
        server.spoken = lambda sound: f"  {words}\n" if sound == SOUND else "other bytes"
        async with speaking(tmp_path, server.url) as chat:
            chat.says({"en": "listen", "ja": "聞いて", "zh": "听一下"}[language], files=[VOICE])
            await chat.shown(1)
            assert say(language, "voice_note", text=words) in chat.questions[0]
            chat.says("and what did I say")
            await chat.shown(2)
            earlier = "\n".join(message.text for message in chat.requests[-1].messages)
            assert words in earlier, "its words stay in the talk"
        assert server.heard == [("whisper-1", "voice.ogg", "audio/ogg")]


HEARD = {**VOICE, "transcript": "by milk", "transcript_origin": "platform"}


@pytest.mark.rule("CH-7", "WX-35")
@pytest.mark.parametrize(("words", "language"), [("buy milk", "en"), ("牛乳を買って", "ja"), ("买牛奶", "zh")])
async def test_our_own_ear_goes_before_what_the_platform_wrote_down(tmp_path: Path, words: str, language: str) -> None:
    async with FakeModel() as server:
        server.spoken = lambda _sound: words
        async with speaking(tmp_path, server.url) as chat:
            chat.says({"en": "listen", "ja": "聞いて", "zh": "听一下"}[language], files=[HEARD])
            await chat.shown(1)
            assert say(language, "voice_note", text=words) in chat.questions[0]
            chat.says("more")
            await chat.shown(2)
            earlier = "\n".join(message.text for message in chat.requests[-1].messages)
            assert words in earlier
            assert "by milk" not in earlier
        assert len(server.heard) == 1


@pytest.mark.rule("CH-7", "WX-35")
@pytest.mark.parametrize("why", ["nobody is configured", "the endpoint fails", "no words", "the sound is gone"])
async def test_what_the_platform_wrote_down_counts_where_we_hear_nothing(tmp_path: Path, why: str) -> None:
    async with FakeModel() as server:
        server.spoken = lambda _sound: ""
        if why == "the endpoint fails":
            server.will(error(500, "no"))
        async with speaking(tmp_path, "" if why == "nobody is configured" else server.url) as chat:
            if why == "the sound is gone":
                chat.platform.files.clear()
            chat.says("", files=[HEARD])
            await chat.shown(1)
            assert "[voice note] by milk" in chat.questions[0]
            chat.says("more")
            await chat.shown(2)
            earlier = "\n".join(message.text for message in chat.requests[-1].messages)
            assert "[voice note] by milk" in earlier, "it survives being stored"


@pytest.mark.rule("CH-7")
@pytest.mark.parametrize("why", ["nobody is configured", "the endpoint fails", "no words", "too large"])
async def test_without_words_the_note_is_named_and_the_person_is_answered(tmp_path: Path, why: str) -> None:
    async with FakeModel() as server:
        server.spoken = lambda _sound: ""
        if why == "the endpoint fails":
            server.will(error(500, "no"))
        file = {**VOICE, "size": 20_000_001} if why == "too large" else VOICE
        async with speaking(tmp_path, "" if why == "nobody is configured" else server.url) as chat:
            if why == "too large":
                chat.platform.files["v1"] = b"OggS" + b"\x00" * 20_000_000
            chat.says("listen", files=[file])
            await chat.shown(1)
            assert "voice.ogg" in chat.questions[0]
            assert "voice note]" not in chat.questions[0]
        assert len(server.heard) == (1 if why in ("the endpoint fails", "no words") else 0)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/v1", "not an address"])
async def test_an_endpoint_that_cannot_be_reached_is_one_fault(url: str) -> None:
    with pytest.raises(TranscriptionFailed):
        await EndpointTranscriber(base_url=url, api_key="", model="m").words(SOUND, name="a.ogg", mime="audio/ogg")
