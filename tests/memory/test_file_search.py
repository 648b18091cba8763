"""Searching files: every script, words alone and with vectors, by what a turn may read, and never a text that is not there any more."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from memory import provenance
from memory.areas import areas_of
from memory.chunk_rows import totals
from memory.database import Database
from memory.embedders.hashed import hash_embedder
from memory.file_search import FileSearch, Serving
from memory.hot_areas import HotAreas
from memory.lines import entries
from memory.lore import MATCH_MAX_TOKENS
from memory.provenance import LineRow, Origin
from memory.scopes import ROOT, STRANGER, WITHOUT_MEMORY, Access, Area
from memory.tokens import count
from tests.memory.indexed import OWNER, House, access_of, house, lines, person, space, vectors_ready


@pytest.fixture
async def words(tmp_path: Path, database: Database) -> AsyncIterator[House]:
    """A memory that is searched by words alone, on either database."""
    async with house(tmp_path, database) as built:
        yield built


@pytest.fixture
async def quick(tmp_path: Path, sqlite: Database) -> AsyncIterator[House]:
    async with house(tmp_path, sqlite) as built:
        yield built


# -- every script ------------------------------------------------------------------------------------------------------

PLANTED = {
    "en": ("The spare key is under the heron statue.", ["heron", "HERON", "where is the statue?"]),
    "de": ("Die Großmutter wohnt in Görlitz.", ["Görlitz", "gorlitz", "wo wohnt die Grossmutter"]),
    "ru": ("Пользователь живёт в Казани.", ["Казани", "казани", "живет", "где он живёт", "Казань"]),
    "el": ("Το σκυλί λέγεται Αργος.", ["Αργος", "ΑΡΓΟΣ", "πώς λέγεται το σκυλί"]),
    "ar": ("يعيش المستخدم في مدينة حَلَب.", ["حلب", "المستخدم", "أين يعيش المستخدم"]),
    "he": ("הכלב שלי נקרא רקסי.", ["רקסי", "איך נקרא הכלב"]),
    "zh": ("用户喜欢乌龙茶,住在杭州。", ["乌龙", "他喜欢喝什么茶", "用户住在哪里", "喜欢乌龙茶的是谁"]),
    "ja": ("シロと公園に行って、見晴らし台で弁当を食べた。", ["シロはどこ", "公園", "弁当を食べたのはいつ"]),
    "ko": ("강아지 이름은 보리이고 간식은 고구마다.", ["보리", "강아지 이름이 뭐야", "고구마"]),
    "th": ("แมวของฉันชื่อมะลิและชอบนอนบนหลังคา", ["มะลิ", "แมวชื่ออะไร", "หลังคา"]),
    "mixed": ("Hello 世界", ["hello", "HELLO", "世"]),
}


@pytest.mark.rule("WD-109", "WD-110", "RS-176")
@pytest.mark.case("VX-17", "VX-18", "VX-19")
async def test_every_script_is_found_by_words_alone(words: House) -> None:
    for language, (fact, _) in PLANTED.items():
        words.put(ROOT, f"knowledge/{language}.md", f"# Notes\n\n{fact}\n")
    await words.indexing.prepare_scope(ROOT)
    for language, (_, questions) in PLANTED.items():
        for question in questions:
            assert (await words.paths(question))[:1] == [f"knowledge/{language}.md"], question


@pytest.mark.rule("WD-109", "RS-176")
async def test_a_whole_question_finds_the_two_characters_it_shares_with_a_note(words: House) -> None:
    await words.know(MEMORY="- 下班路上見到了小白\n- 今天很冷\n", user="- likes tea\n")
    assert [hit.snippet for hit in await words.hits("你还记得小白吗")][:1] and "小白" in (await words.hits("你还记得小白吗"))[0].snippet


@pytest.mark.rule("WD-110")
async def test_an_inflected_form_that_shares_four_letters_is_found_without_vectors(quick: House) -> None:
    await quick.know(MEMORY="- Мы купили собаку Рекса\n- She collects lighthouses\n")
    assert await quick.paths("собака") and await quick.paths("lighthouse keeper")
    assert not await quick.paths("со")


@pytest.mark.rule("RS-176")
async def test_both_databases_give_the_same_list(words: House) -> None:
    for number in range(40):
        words.put(ROOT, f"memory/2026-02-{number % 28 + 1:02}.md" if number < 28 else f"knowledge/p{number}.md", lines(
            [f"note {number} about harbour {'lamp ' * (number % 4)}", f"第{number}回 公園{'の犬' * (number % 3)}"]
        ))  # fmt: skip
    await words.indexing.prepare_scope(ROOT)
    found = [(hit.path, round(hit.score, 9)) for hit in await words.hits("harbour lamp 公園の犬", limit=12)]
    assert len(found) == 12
    assert found == sorted(found, key=lambda each: -each[1])
    GIVEN.append(found)
    assert GIVEN[0] == found


GIVEN: list[list[tuple[str, float]]] = []  # by each database: the test above runs once on each, and the second compares


# -- no cut, age -------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-108", "WD-107")
@pytest.mark.case("VX-20")
async def test_a_weak_word_and_an_old_day_are_found_all_the_same(words: House) -> None:
    filler = ["we talked about the weather and the garden for a long while"] * 8
    words.put(ROOT, "memory/2025-12-01.md", lines([*filler, "the heron came back"]))
    words.put(ROOT, "memory/2026-03-13.md", lines(["a heron, a heron, a heron"]))
    for day in range(1, 28):
        words.put(ROOT, f"memory/2026-02-{day:02}.md", lines([f"day {day} of the month"]))
    await words.indexing.prepare_scope(ROOT)
    assert set(await words.paths("heron")) == {"memory/2025-12-01.md", "memory/2026-03-13.md"}


@pytest.mark.rule("WD-107")
async def test_of_two_equal_days_the_newer_stands_first_and_a_page_does_not_age(quick: House) -> None:
    for path in ("memory/2025-01-01.md", "memory/2026-03-01.md", "MEMORY.md"):
        quick.put(ROOT, path, "- the boat is called Lyra\n")
    await quick.indexing.prepare_scope(ROOT)
    found = await quick.hits("Lyra")
    assert found[0].path == "memory/2026-03-01.md"
    scores = {hit.path: hit.score for hit in found}
    assert scores["MEMORY.md"] == pytest.approx(scores["memory/2025-01-01.md"], abs=1e-3)


# -- who may see what --------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-10", "WD-127")
async def test_no_scope_finds_what_another_has(words: House) -> None:
    anna, ben, group = person("anna"), person("ben"), space("club")
    for scope in (ROOT, anna, ben, group):
        words.put(scope, "MEMORY.md", f"- the secret word is heron, kept by {scope.id or 'root'}\n")
    words.put(ROOT, "knowledge/public/birds.md", "A heron is a bird.\n")
    words.put(ROOT, "knowledge/private.md", "The heron plan.\n")
    for scope in (ROOT, anna, ben, group):
        await words.indexing.prepare_scope(scope)
    for scope in (anna, ben, group):
        found = await words.hits("heron", access_of(scope))
        assert {(hit.scope, hit.path) for hit in found} == {(scope, "MEMORY.md"), (ROOT, "knowledge/public/birds.md")}
    owner = await words.hits("heron")
    assert {(hit.scope, hit.path) for hit in owner} == {
        (ROOT, "MEMORY.md"), (ROOT, "knowledge/public/birds.md"), (ROOT, "knowledge/private.md"),
    }  # fmt: skip
    assert [hit.path for hit in await words.hits("heron", STRANGER)] == ["knowledge/public/birds.md"]
    assert await words.hits("heron", WITHOUT_MEMORY) == []


@pytest.mark.rule("WD-127")
def test_an_access_that_reads_some_other_part_of_a_scope_reads_no_area() -> None:
    assert areas_of(Access(scope=None, reads=(Area(ROOT, "knowledge"), Area(ROOT, "knowledge/public/x")))) == ()
    assert areas_of(access_of(person("anna"))) == (str(person("anna")), "public")


@pytest.mark.rule("WD-10")
async def test_each_hit_is_asked_about_again_before_it_is_told(quick: House) -> None:
    anna = person("anna")
    await quick.know(anna, MEMORY="- heron\n")
    spoil = sa.text("UPDATE file_chunks SET area = 'root'")  # whatever may go wrong with the index
    await quick.db.write(lambda connection: connection.execute(spoil).close())
    await quick.db.write(lambda connection: connection.exec_driver_sql("UPDATE file_words SET tokens = replace(tokens, 'x', 'y')").close())
    assert await quick.hits("heron") == []


@pytest.mark.rule("WD-78")
async def test_diaries_and_system_md_are_not_searched(quick: House) -> None:
    quick.put(ROOT, "memory/dreams/2026-03-01.md", "heron\n")
    quick.put(ROOT, "system.md", "heron\n")
    quick.put(ROOT, "notes.md", "heron\n")
    await quick.indexing.prepare_scope(ROOT)
    assert await quick.paths("heron") == []


# -- the live file -----------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-113")
@pytest.mark.case("VX-22")
async def test_what_was_deleted_or_emptied_is_gone_at_once(words: House) -> None:
    words.put(ROOT, "memory/2026-03-01.md", "- the code word is heron\n")
    words.put(ROOT, "memory/2026-03-02.md", "- the heron again\n")
    await words.indexing.prepare_scope(ROOT)
    assert len(await words.paths("heron")) == 2
    words.path(ROOT, "memory/2026-03-01.md").unlink()
    words.put(ROOT, "memory/2026-03-02.md", "")
    assert await words.paths("heron") == []  # before anybody looked at the files
    await words.indexing.prepare_scope(ROOT)
    assert (await words.db.read(totals)) == (0, 0)
    left = await words.db.read(lambda connection: connection.exec_driver_sql("SELECT count(*) FROM file_words").scalar_one())
    assert left == 0


@pytest.mark.rule("WD-113")
async def test_a_hit_that_its_file_does_not_say_any_more_is_dropped_and_the_file_read_again(quick: House) -> None:
    heard: list[tuple[str, str]] = []
    search = FileSearch(
        quick.db, quick.files, HotAreas(), serving=Serving, stale=lambda scope, path: heard.append((str(scope), path)), today=quick.clock.now.date
    )
    await quick.know(MEMORY="- the heron sleeps\n", user="- a heron too\n")
    quick.put(ROOT, "MEMORY.md", "- the stork sleeps\n")
    assert [hit.path for hit in (await search.search(OWNER, "heron")).hits] == ["user.md"]
    assert heard == [("root", "MEMORY.md")]


@pytest.mark.rule("WD-102")
async def test_a_hit_names_its_lines_as_the_file_has_them_now(quick: House) -> None:
    await quick.know(MEMORY="# Facts\n\n- the heron sleeps\n- tea\n")
    quick.put(ROOT, "MEMORY.md", "# Facts\n\n- one more line\n\n- the heron sleeps\n- tea\n")
    (hit,) = await quick.hits("heron")
    assert (hit.first_line, hit.last_line) == (5, 6)


@pytest.mark.rule("WD-23")
async def test_a_file_that_cannot_be_read_is_kept_out(quick: House) -> None:
    await quick.know(MEMORY="- heron\n")
    quick.path(ROOT, "MEMORY.md").write_bytes(b"\xff\xfe heron")
    assert await quick.paths("heron") == []
    await quick.indexing.prepare_scope(ROOT)
    assert await quick.db.read(totals) == (0, 0)


# -- what a hit tells --------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-102", "WD-5")
async def test_a_hit_tells_whose_words_it_rests_on(quick: House) -> None:
    text = "# Days\n\n- the heron sleeps\n\n## Other\n\n- a heron from the web\n\n## Mine\n\n- my heron, typed by hand\n"
    await quick.know(MEMORY=text)
    rows = [
        LineRow(hash=entry.hash, origin=origin, author="summary")
        for entry, origin in zip(entries(text), (Origin.PERSON, Origin.MIXED), strict=False)
    ]
    await quick.db.write(lambda connection: provenance.put_lines(connection, "root", "MEMORY.md", rows, quick.clock()))
    found = {hit.heading: hit.origin for hit in await quick.hits("heron")}
    assert found == {"Days": Origin.PERSON, "Days > Other": Origin.MIXED, "Days > Mine": Origin.HUMAN}


@pytest.mark.rule("WD-102")
async def test_the_snippet_is_short_and_holds_what_matched(quick: House) -> None:
    filler = "We talked for a long time about the weather and about nothing else. " * 12
    japanese = f"{'猫と犬の話をした。' * 60}白鷺の名前はオットーだ。{'天気の話。' * 40}\n"
    await quick.know(MEMORY=f"- {filler}The heron is called Otto. {filler}\n", user=japanese)
    for query, told in (("heron", "Otto"), ("白鷺の名前", "オットー")):
        (hit, *_) = await quick.hits(query)
        assert told in hit.snippet
        assert len(hit.snippet) <= 500


@pytest.mark.rule("WD-102")
async def test_a_search_that_failed_is_not_one_that_found_nothing(quick: House) -> None:
    await quick.know(MEMORY="- heron\n")
    nothing = await quick.look("zebra")
    assert (nothing.mode, nothing.note, nothing.hits) == ("words", "off", ())
    await quick.db.write(lambda connection: connection.exec_driver_sql("DROP TABLE file_words").close())
    failed = await quick.look("heron")
    assert (failed.mode, failed.hits) == ("failed", ())


# -- with vectors ------------------------------------------------------------------------------------------------------


@pytest.mark.rule("RS-173", "WD-107")
async def test_words_and_vectors_answer_together(tmp_path: Path, database: Database) -> None:
    async with house(tmp_path, database, embedder=hash_embedder(256), run=True) as built:
        for number in range(30):
            built.put(ROOT, f"knowledge/p{number}.md", f"Page {number} tells about the number {number * 7}.\n")
        built.put(ROOT, "knowledge/heron.md", "The heron is called Otto.\n")
        await built.indexing.prepare_scope(ROOT)
        await vectors_ready(built)
        found = await built.look("the heron is called")
        assert (found.mode, found.note) == ("hybrid", "")
        assert found.hits[0].path == "knowledge/heron.md"


UNRELATED = {
    "en": ("Could somebody repair the bicycle?", ("The heron is called Otto.", "The plum trees are cut in March.")),
    "ja": ("自転車はどこ？", ("サギの名前はオットーです。", "梅の木は三月に切る。")),
    "zh": ("自行车在哪里？", ("苍鹭的名字叫奥托。", "梅树在三月修剪。")),
}


@pytest.mark.rule("RS-174", "RS-175", "WD-107")
@pytest.mark.parametrize("language", UNRELATED)
async def test_a_find_that_has_nothing_to_do_with_the_question_is_known_as_such(tmp_path: Path, sqlite: Database, language: str) -> None:
    question, texts = UNRELATED[language]
    async with house(tmp_path, sqlite, embedder=hash_embedder(256), run=True) as built:
        for number, text in enumerate(texts):
            built.put(ROOT, f"knowledge/p{number}.md", f"{text}\n")
        await built.indexing.prepare_scope(ROOT)
        await vectors_ready(built)
        search = built.indexing.search.search
        assert [hit.fits for hit in (await search(OWNER, question)).hits] == [False, False]
        found = await search(OWNER, texts[1][:-1])
        assert [(hit.path, hit.fits) for hit in found.hits] == [("knowledge/p1.md", True), ("knowledge/p0.md", False)]
        common = await search(OWNER, "the")  # where no word is rare, any will do
        assert [hit.fits for hit in common.hits] == [language == "en"] * 2


@pytest.mark.rule("WD-139", "RS-174", "RS-175")
async def test_lore_comes_up_when_it_is_meant_and_stays_away_otherwise(quick: House) -> None:
    quick.put(ROOT, "knowledge/dragon.md", "---\nlore: match\n---\n\nThe dragon Vermithor guards the bridge of Karath.\n")
    quick.put(ROOT, "knowledge/plain.md", "The dragon Vermithor is in this plain page too.\n")
    for number in range(12):
        quick.put(ROOT, f"knowledge/l{number}.md", f"---\nlore: match\n---\n\n{'Vermithor and the long story of the people there. ' * 12} {number}\n")
    await quick.indexing.prepare_scope(ROOT)
    found = await quick.indexing.search.matching_lore(OWNER, "Who guards the bridge of Karath?")
    assert [hit.path for hit in found] == ["knowledge/dragon.md"]
    assert await quick.indexing.search.matching_lore(OWNER, "How are you and what is it that you do there?") == ()
    many = await quick.indexing.search.matching_lore(OWNER, "Vermithor")
    assert 1 <= len(many) <= 3
    assert sum(count(hit.snippet) for hit in many) <= MATCH_MAX_TOKENS
    assert "knowledge/plain.md" not in {hit.path for hit in many}


@pytest.mark.rule("WD-8")
async def test_pages_can_be_left_out(quick: House) -> None:
    quick.put(ROOT, "knowledge/heron.md", "heron\n")
    await quick.know(MEMORY="- heron\n")
    found = await quick.indexing.search.search(OWNER, "heron", knowledge=False)
    assert [hit.path for hit in found.hits] == ["MEMORY.md"]
