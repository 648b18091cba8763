"""A gateway in which people have lived for two weeks: talks in three languages, channels, costs. For looking at every page as it will be."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
from playwright.async_api import Browser

from agent.llm.port import Usage
from agent.llm.scripted import End, Say, Wait
from channels.loopback import LoopbackChannel, LoopbackPlatform
from channels.message import Account
from gateway.access import Rules
from gateway.channel_set import Plan
from tests.e2e.browser import House, Person, Script
from tests.harness import eventually, loopback_plan, running

LANGUAGES = ("en", "ja", "zh")


@dataclass(slots=True)
class PastClock:
    """The time, so many days ago."""

    days: float = 0

    def __call__(self) -> datetime:
        return datetime.now(UTC) - timedelta(days=self.days)


@dataclass(frozen=True, slots=True)
class Life:
    """Who somebody is, what they talked about in the last days, and the talk that is open: pairs of question and answer."""

    name: str
    zone: str
    past: Mapping[str, tuple[float, str, str]]  # title → days ago, question, answer
    title: str
    talk: tuple[tuple[str, str], ...]
    note: tuple[str, str]  # name and words of a file that goes with the first question
    draft: str


LIVES: Mapping[str, Life] = {
    "en": Life(
        name="Mira",
        zone="Europe/London",
        past={
            "Bread that rises in the cold": (0.1, "Can dough rest in the fridge for two days?", "Yes, up to three. Cover it well."),
            "A letter to the council": (1, "Make this letter shorter.", "Here is a shorter one."),
            "Names for a grey cat": (1.1, "Names for a grey cat?", "Ash, Pewter, Fog."),
            "Sorting a list by two keys in Python": (4, "Sort by two keys?", "Give `key` a tuple."),
            "What the tide tables mean": (5, "What is a neap tide?", "The smallest of the month."),
            "Birthday of Aunt Rosa": (12, "Ideas for a present?", "A walk and a cake."),
        },
        title="Three days in Kyoto in November",
        talk=(
            (
                "We are three days in Kyoto in late November. My mother walks slowly, and we would like to see maple leaves without the crowds. "
                "Can you plan it?",
                """Gladly. Late November is the height of the **maple season**, so the trick is to go early and to leave before eleven.

### A gentle plan

| Day | Morning | Afternoon |
|---|---|---|
| Friday | Shinnyo-dō, almost empty at eight | Tea on Mount Yoshida |
| Saturday | Tōfuku-ji, the garden opens at half past eight | Rest, then the river |
| Sunday | Ōkōchi Sansō in Arashiyama | Train home from Saga |

- **Few stairs:** Shinnyo-dō has one slope; a taxi can wait at the upper gate.
- **Warm breaks:** each afternoon has a place to sit, indoors.
- **If it rains:** the moss at *Giō-ji* is at its best then.

Shall I note the opening hours and what a taxi costs?""",
            ),
            (
                "Yes please. And how far is it from Shinnyo-dō to the tea house?",
                """About **900 metres**, mostly flat: 15 minutes at your mother's pace.

1. Leave by the western gate and follow the stone wall.
2. Turn left at the small shrine; there is a bench half way.
3. The tea house, *Mo-an*, opens at 11:30 and has chairs as well as mats.

A taxi from Kyoto Station to Shinnyo-dō takes 20 minutes and costs about ¥2,400.""",
            ),
        ),
        note=("wishes.txt", "No crowds. Soft beds. One evening with soba."),
        draft="And where would you eat soba nearby?",
    ),
    "ja": Life(
        name="葵",
        zone="Asia/Tokyo",
        past={
            "梅干しの塩分を減らすには": (0.1, "梅干しの塩分は何パーセントがいい？", "十二パーセントなら安心です。"),
            "町内会へのお知らせ文": (1, "この文を短くして。", "短くしました。"),
            "灰色の猫の名前": (1.1, "灰色の猫の名前は？", "霧、錫、灰音。"),
            "Python で二つのキーで並べ替える": (4, "二つのキーで並べたい", "`key` にタプルを渡します。"),
            "潮見表の読み方": (5, "小潮って何？", "干満の差がいちばん小さい日です。"),
            "祖母の米寿のお祝い": (12, "贈り物は何がいい？", "散歩とお菓子はいかがでしょう。"),
        },
        title="十一月の京都、三日間の旅",
        talk=(
            (
                "十一月の終わりに三日間、京都へ行きます。母はゆっくり歩くので、人の少ないところで紅葉を見たいです。予定を考えてくれますか。",
                """はい、よろこんで。十一月の終わりは**紅葉の盛り**なので、朝早く出て、十一時までに移るのがこつです。

### ゆっくり歩く三日間

| 日 | 午前 | 午後 |
|---|---|---|
| 金曜 | 真如堂。八時ならほとんど人がいません | 吉田山でお茶 |
| 土曜 | 東福寺。庭は八時半に開きます | 宿で休んでから鴨川へ |
| 日曜 | 嵐山の大河内山荘 | 嵯峨から電車で帰る |

- **階段が少ない：** 真如堂は坂がひとつだけ。上の門までタクシーで行けます。
- **暖かい休み場所：** 午後はどの日も、座って休める部屋があります。
- **雨の日は：** 祇王寺の苔がいちばんきれいです。

開門の時間とタクシー代も書きましょうか。""",
            ),
            (
                "お願いします。真如堂からお茶のお店まではどのくらい歩きますか。",
                """およそ**九百メートル**で、ほとんど平らです。お母さまの足で十五分ほどです。

1. 西の門を出て、石垣にそって歩きます。
2. 小さなお社を左へ。途中にベンチがあります。
3. 茶房「茂庵」は十一時半に開きます。椅子の席もあります。

京都駅から真如堂までのタクシーは二十分、およそ二千四百円です。""",
            ),
        ),
        note=("希望.txt", "混まないところ。やわらかい布団。一度はおそば。"),
        draft="近くでおいしいおそば屋さんはありますか。",
    ),
    "zh": Life(
        name="林晓",
        zone="Asia/Shanghai",
        past={
            "冷藏发酵的面包": (0.1, "面团可以在冰箱里放两天吗？", "可以，最多三天，要盖好。"),
            "写给居委会的信": (1, "把这封信改短一点。", "已经改短了。"),
            "给灰猫起名字": (1.1, "灰猫叫什么好？", "小雾、锡兰、阿灰。"),
            "Python 按两个键排序": (4, "怎么按两个键排序？", "给 `key` 一个元组。"),
            "潮汐表怎么看": (5, "什么是小潮？", "一个月里潮差最小的时候。"),
            "外婆的生日": (12, "送什么好？", "陪她散步，再带一个蛋糕。"),
        },
        title="十一月的京都三日行程",
        talk=(
            (
                "我们十一月底去京都三天。妈妈走得慢，想避开人群看红叶。能帮我们安排一下吗？",
                """当然可以。十一月底正是**红叶最盛**的时候，诀窍是一早出门，十一点以前离开。

### 慢慢走的三天

| 日子 | 上午 | 下午 |
|---|---|---|
| 星期五 | 真如堂，八点几乎没有人 | 吉田山喝茶 |
| 星期六 | 东福寺，庭园八点半开门 | 先休息，再去鸭川 |
| 星期日 | 岚山的大河内山庄 | 从嵯峨坐电车回去 |

- **台阶少：** 真如堂只有一段坡，出租车可以开到上面的门口。
- **暖和的地方：** 每天下午都有可以坐下来的室内。
- **下雨的话：** 祇王寺的青苔这时候最美。

要不要我把开门时间和车费也写上？""",
            ),
            (
                "好的，麻烦你。从真如堂走到茶馆有多远？",
                """大约**九百米**，基本是平路，按妈妈的速度走十五分钟左右。

1. 从西门出来，沿着石墙走。
2. 在小神社左转，半路有一条长椅。
3. 茶馆“茂庵”十一点半开门，也有椅子座位。

从京都站坐出租车到真如堂要二十分钟，大约两千四百日元。""",
            ),
        ),
        note=("心愿.txt", "人少。床软。有一晚吃荞麦面。"),
        draft="附近哪里的荞麦面好吃？",
    ),
}

CONFIG: Mapping[str, Any] = {
    "model": {
        "provider": "openai", "base_url": "http://127.0.0.1:9/v1", "name": "qwen3-30b", "api_key": "sk-of-nobody",
        "price": {"input": 0.2, "cached": 0.05, "output": 0.8},
    },
    "characters": {"default": {"name": "Yume"}, "editor": {"name": "Kaito"}},
    "rate": {"person_per_minute": 0, "chat_per_minute": 0},
    "channels": {"web": {"port": 0, "guests": True}},
}  # fmt: skip


@dataclass(slots=True)
class Scene:
    """The house and, for each language, somebody with the id of their open talk and of a challenge."""

    house: House
    people: dict[str, tuple[Person, str]]


@asynccontextmanager
async def lived_in(folder: Path, browser: Browser) -> AsyncGenerator[Scene]:
    script, clock = Script(model_name="qwen3-30b"), PastClock()
    telegram, discord = LoopbackPlatform(), LoopbackPlatform()
    channels = (_channel(telegram, "telegram", "family"), _channel(discord, "discord", "reading-circle"))
    script.otherwise = "Hello. I am here and ready to help."
    async with running(folder, script.fresh, config=CONFIG, clock=clock, channels=channels) as gateway:
        house = House(gateway, browser, script, "looks")
        people: dict[str, tuple[Person, str]] = {}
        sessions: list[aiohttp.ClientSession] = []
        try:
            clock.days = 13
            for language in LANGUAGES:
                person = await house.person(LIVES[language].name)
                sessions.append(person.api.http)
                people[language] = (person, "")
            for language, (person, _) in people.items():
                people[language] = (person, await _live(house, person, LIVES[language], language, clock))
            await house.add({"name": "Ben", "role": "user"}, {"name": "Fumiko", "role": "admin"})
            await _chatter(house, telegram, discord)
            yield Scene(house, people)
        finally:
            for session in sessions:
                await session.close()


def _channel(platform: LoopbackPlatform, channel: str, name: str) -> Plan:
    account = Account(channel=channel, name=name)
    plan = loopback_plan(platform, name=name, rules=Rules(allow=frozenset({"*"}), groups=frozenset({"*"})))
    return replace(plan, account=account, build=lambda: LoopbackChannel(platform, account=account))


async def _live(house: House, person: Person, life: Life, language: str, clock: PastClock) -> str:
    """Lets somebody have their talks, the oldest first; the id of the one that is open."""
    for title, (days, question, answer) in sorted(life.past.items(), key=lambda item: -item[1][0]):
        clock.days = days
        await _exchange(house, person, await person.api.chat(title=title), ((question, answer),), tokens=round(900 + 700 * days))
    clock.days = 0.05
    challenge = await person.api.chat(kind="challenge", title={"en": "Twenty questions", "ja": "二十の扉", "zh": "二十个问题"}[language])
    await _exchange(house, person, challenge, (("1", "2"),), tokens=700)
    clock.days = 0
    chat = await person.api.chat(title=life.title)
    name, words = life.note
    form = aiohttp.FormData()
    form.add_field("file", words.encode(), filename=name)
    async with person.api.http.post(f"{house.url}/api/attachments", data=form) as answer:
        file = (await answer.json())["id"]
    await _exchange(house, person, chat, life.talk, tokens=2400, attachments=[file])
    async with person.api.http.patch(f"{house.url}/api/me", json={"language": language, "timezone": life.zone}) as answer:
        assert answer.status == 200
    return chat


async def _exchange(
    house: House, person: Person, chat: str, talk: tuple[tuple[str, str], ...], *, tokens: int, attachments: list[str] | None = None
) -> None:
    for number, (question, answer) in enumerate(talk, 1):
        usage = Usage(input_tokens=tokens * number, output_tokens=len(answer) // 2, cached_tokens=tokens // 2 * (number - 1))
        writing = [Wait(0.4), Say(answer, chars=12, pause_s=0.02)] if attachments and number == len(talk) else [Say(answer)]
        house.will([*writing, End(usage=usage)])
        await person.api.say(chat, question, **({"attachments": attachments} if attachments and number == 1 else {}))
        await person.api.answers(chat, number, within_s=30)
    last = (await person.api.messages(chat))[-1]["id"]
    async with person.api.http.patch(f"{house.url}/api/chats/{chat}", json={"seen": last}) as answer:
        assert answer.status == 200


async def _chatter(house: House, telegram: LoopbackPlatform, discord: LoopbackPlatform) -> None:
    """A few words on the other channels."""
    house.will("On my way.", "晚上好。")
    telegram.says("4711", "Are you there?", sender="4711", name="Rosa")
    await _until_shown(telegram)
    discord.says("8150", "晚上好", sender="8150", name="小雨")
    await _until_shown(discord)


async def _until_shown(platform: LoopbackPlatform) -> None:
    async def shown() -> bool:
        return bool(platform.shown)

    await eventually(shown, within_s=30)
