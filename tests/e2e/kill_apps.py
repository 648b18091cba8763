"""The chat apps of the kill tests: how people write on each fake, what they see, and what can go wrong with its connection.

One class an app; what an app cannot do (a platform that never asks to wait, a bot that is called and polls nothing) is data, not a branch in a test.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Generic, TypeVar

from tests.e2e.conftest import Household
from tests.peers.discord.server import FakeDiscord
from tests.peers.discord.world import DM
from tests.peers.discord.world import TOKEN as DISCORD_TOKEN
from tests.peers.telegram.server import FakeBotApi
from tests.peers.telegram.world import TOKEN as TELEGRAM_TOKEN
from tests.peers.threaded import Threaded
from tests.peers.wechat import ilink_world, official_server, wecom_server
from tests.peers.wechat.ilink_server import FakeIlink
from tests.peers.wechat.official_server import FakeOfficial
from tests.peers.wechat.wecom_server import FakeWeCom
from tests.ports import free_port

PNG = b"\x89PNG\r\n\x1a\n"
ADA = 700001
ANN = "ann@im.wechat"
S = TypeVar("S", bound=Threaded)


class App(Generic[S]):
    """`tells`: after a send of which nobody knows, the second copy says so, for the platform has no means to find out or to show it once.
    `waits`: the platform orders waits. `previews`: an answer is on show while it grows. `polls`: there is a connection of ours that may be dead.
    `albums`: pictures can be fetched from the fake. `keeps`: what was written while nobody was there comes at once with the next start.
    `replies`: an answer may also leave in the reply to the platform's own call, which no order holds back."""

    name: ClassVar[str]
    tells: ClassVar[bool] = False
    waits: ClassVar[bool] = True
    previews: ClassVar[bool] = False
    polls: ClassVar[bool] = True
    albums: ClassVar[bool] = True
    keeps: ClassVar[bool] = True
    replies: ClassVar[bool] = False

    server: S

    @property
    def config(self) -> Mapping[str, Any]:
        """What stands under `channels` in the configuration."""
        raise NotImplementedError

    def prepare(self, home: Household) -> None:
        """What must be in the store before the first start."""

    def is_heard(self) -> bool:
        """Whether the gateway listens now."""
        return True

    def says(self, text: str) -> None:
        raise NotImplementedError

    def shares(self, pictures: int, caption: str) -> Iterator[Callable[[], object]]:
        """An album, in pieces as the platform hands them out, each to be played."""
        raise NotImplementedError

    def texts(self) -> list[str]:
        raise NotImplementedError

    def deafen(self, deaf: bool) -> None:
        """The connection stands and nothing comes over it any more."""
        raise NotImplementedError

    def hang(self) -> None:
        """The next message of the bot's is taken and neither shown nor answered."""
        raise NotImplementedError


class Telegram(App[FakeBotApi]):
    name = "telegram"
    tells = previews = True

    def __init__(self) -> None:
        self.server = FakeBotApi()
        self.server.world.chat(ADA)

    @property
    def config(self) -> Mapping[str, Any]:
        return {"telegram": {"enabled": True, "token": TELEGRAM_TOKEN, "base_url": self.server.url, "allow": [str(ADA)]}}

    def says(self, text: str) -> None:
        self.server.says(ADA, text)

    def shares(self, pictures: int, caption: str) -> Iterator[Callable[[], object]]:
        world = self.server.world
        for number in reversed(range(pictures)):  # in any order
            picture = world.file(f"{number}.png", PNG + str(number).encode()) | {"width": 90, "height": 90}
            message = {
                "message_id": 5000 + number, "date": int(time.time()), "chat": world.chat(ADA).json(), "media_group_id": "G1", "photo": [picture],
                "from": {"id": ADA, "is_bot": False, "first_name": "Ada"},
            } | ({"caption": caption} if number == 0 else {})  # fmt: skip
            yield lambda message=message: self.server.put(message=message)

    def texts(self) -> list[str]:
        return self.server.world.texts(ADA)

    def deafen(self, deaf: bool) -> None:
        self.server.deaf = deaf

    def hang(self) -> None:
        self.server.world.fail_next({"hang": True})


class Discord(App[FakeDiscord]):
    name = "discord"
    previews = True

    def __init__(self) -> None:
        self.server = FakeDiscord()

    @property
    def config(self) -> Mapping[str, Any]:
        server = self.server
        return {"discord": {"enabled": True, "token": DISCORD_TOKEN, "api_base": server.url, "gateway_url": server.gateway_url, "allow": ["*"]}}

    def is_heard(self) -> bool:
        return bool(self.server.identified and self.server.connections)

    def says(self, text: str) -> None:
        self.server.says(DM, text)

    def shares(self, pictures: int, caption: str) -> Iterator[Callable[[], object]]:
        world = self.server.world
        files = [world.file(f"{number}.png", PNG + str(number).encode(), "image/png") for number in range(pictures)]
        yield lambda: self.server.says(DM, caption, attachments=files)

    def texts(self) -> list[str]:
        return self.server.texts(DM)

    def deafen(self, deaf: bool) -> None:
        self.server.deaf = deaf

    def hang(self) -> None:
        self.server.plan({"hang": True})


class Ilink(App[FakeIlink]):
    name = "wechat_ilink"

    def __init__(self) -> None:
        self.server = FakeIlink(ilink_world.World(hold_s=0.1, rate_limited=False))

    @property
    def config(self) -> Mapping[str, Any]:
        return {"wechat_ilink": {"enabled": True, "base_url": self.server.url, "cdn_url": self.server.cdn_url, "allow": ["*"]}}

    def prepare(self, home: Household) -> None:
        """Somebody has scanned the code."""
        login = {"token": ilink_world.TOKEN, "bot_id": ilink_world.BOT_ID, "base_url": self.server.url, "person_id": ANN, "proven": True}
        kept = base64.b64encode(json.dumps(login).encode()).decode()
        home.change("INSERT INTO cursors VALUES ('wechat_ilink', 'main', 'vault/credentials', ?, 0)", kept)

    def says(self, text: str) -> None:
        self.server.says(ANN, text)

    def shares(self, pictures: int, caption: str) -> Iterator[Callable[[], object]]:
        """There are no albums: pictures sent together are messages one after the other."""
        for number in range(pictures):
            texts = (caption,) if number == 0 else ()
            yield (lambda number=number, texts=texts: self.server.says(ANN, *texts, items=[self.server.world.image(PNG + str(number).encode())]))

    def texts(self) -> list[str]:
        return self.server.world.texts(ANN)

    def deafen(self, deaf: bool) -> None:
        self.server.world.deaf = deaf

    def hang(self) -> None:
        self.server.world.fail("sendmessage", {"hang": True})


class Official(App[FakeOfficial]):
    """Answers in the reply to the vendor's own call."""

    name = "wechat_official"
    waits = polls = keeps = False
    replies = True

    def __init__(self) -> None:
        self.server = FakeOfficial(official_server.World())
        self.port = free_port()
        self.server.callback = f"http://127.0.0.1:{self.port}/wechat"

    @property
    def config(self) -> Mapping[str, Any]:
        return {
            "wechat_official": {
                "enabled": True, "app_id": official_server.APP_ID, "app_secret": official_server.APP_SECRET, "token": official_server.TOKEN,
                "aes_key": official_server.AES_KEY, "api_base": self.server.url, "allow": ["*"],
            }
        }  # fmt: skip

    def says(self, text: str) -> None:
        self.server.says(ANN, text)

    def shares(self, pictures: int, caption: str) -> Iterator[Callable[[], object]]:
        """There are no albums: pictures sent together are messages one after the other, without words."""
        for number in range(pictures):
            name = f"{number}.png"
            self.server.world.media[name] = PNG + str(number).encode()
            fields = {"MsgType": "image", "PicUrl": f"{self.server.url}/pic/{name}", "MediaId": name}
            yield lambda fields=fields: self.server.says(ANN, **fields)
        yield lambda: self.server.says(ANN, caption)

    def texts(self) -> list[str]:
        return self.server.world.view(ANN)


class OfficialApi(Official):
    """An account that may also send by the vendor's API: what is late goes out by itself."""

    name = "wechat_official+api"
    tells = waits = True

    @property
    def config(self) -> Mapping[str, Any]:
        (section,) = super().config.values()
        return {"wechat_official": {**section, "customer_service": True, "passive_tries": 1}}

    def hang(self) -> None:
        self.server.world.fail("send", {"hang": True})


class WeCom(App[FakeWeCom]):
    name = "wecom"
    tells = previews = True
    waits = albums = polls = False  # a file lies under the vendor's own domains and nowhere else

    def __init__(self) -> None:
        self.server = FakeWeCom()

    @property
    def config(self) -> Mapping[str, Any]:
        bot = {"bot_id": wecom_server.BOT_ID, "secret": wecom_server.SECRET, "url": self.server.socket_url, "allow": ["*"]}
        return {"wecom": {"enabled": True, **bot}}

    def says(self, text: str) -> None:
        self.server.says(ANN, text)

    def texts(self) -> list[str]:
        return self.server.world.view(ANN)

    def hang(self) -> None:
        self.server.world.fail("aibot_respond_msg", {"drop": True})


APPS: tuple[type[App[Any]], ...] = (Telegram, Discord, Ilink, Official, OfficialApi, WeCom)


@contextmanager
def playing(kind: type[App[Any]]) -> Generator[App[Any]]:
    app = kind()
    with app.server:
        yield app
