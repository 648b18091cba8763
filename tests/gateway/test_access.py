"""Who is answered (CH-110 to CH-118): one fixed order, ids only, nobody by default."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.access import ROLES, RULE_NAMES, Facts, Rules, decide, includes

ADMITTED = Facts(role="user", admitted=True, mentioned=True, group_allowed=True, in_group=True)

# Each rule with the facts that make it apply, in the order of the specification (`not-yours` is the page's own, beside the pairing of chats).
REFUSALS = {
    "paused": {"paused": True},
    "self": {"own_message": True},
    "bot": {"is_bot": True},
    "blocked": {"blocked": True},
    "not-yours": {"yours": False},
    "group-not-allowed": {"group_allowed": False},
    "privacy": {"privacy_full": True},
    "other-bot": {"for_other_bot": True},
    "not-mentioned": {"mentioned": False},
    "role": {"needed_role": "admin"},
    "rate": {"over_rate": True},
    "full": {"queue_full": True},
}
SPECIFIED = (
    "paused", "self", "bot", "blocked", "dm-unpaired", "group-not-allowed", "privacy", "other-bot", "not-mentioned", "role", "rate", "full",
)  # fmt: skip


@pytest.mark.rule("CH-112")
def test_the_rules_are_asked_in_the_order_of_the_specification() -> None:
    assert tuple(name for name in RULE_NAMES if name != "not-yours") == SPECIFIED


@pytest.mark.rule("CH-112")
@pytest.mark.parametrize("name", REFUSALS)
def test_each_rule_refuses_alone(name: str) -> None:
    assert decide(ADMITTED) == ""
    assert decide(replace(ADMITTED, **REFUSALS[name])) == name


@pytest.mark.rule("CH-112")
@pytest.mark.parametrize("position", range(len(REFUSALS)))
def test_of_several_rules_the_first_is_named(position: int) -> None:
    later = {name: value for facts in list(REFUSALS.values())[position:] for name, value in facts.items()}
    assert decide(replace(ADMITTED, **later)) == list(REFUSALS)[position]


@pytest.mark.rule("CH-112", "CH-113")
def test_a_direct_chat_needs_a_known_person_and_no_mention() -> None:
    direct = replace(ADMITTED, in_group=False, group_allowed=False, mentioned=False)
    assert decide(direct) == ""
    assert decide(replace(direct, admitted=False)) == "dm-unpaired"


@pytest.mark.rule("CH-120")
def test_a_listed_bot_is_heard_and_our_own_message_never() -> None:
    listed = replace(ADMITTED, is_bot=True, bot_listed=True)
    assert decide(listed) == ""
    assert decide(replace(listed, own_message=True)) == "self"


@pytest.mark.rule("CH-118")
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("needed", ROLES)
def test_each_role_includes_the_ones_before_it(role: str, needed: str) -> None:
    assert includes(role, needed) == (ROLES.index(role) >= ROLES.index(needed))
    assert decide(replace(ADMITTED, role=role, needed_role=needed)) == ("" if includes(role, needed) else "role")


@pytest.mark.rule("CH-118")
@pytest.mark.parametrize("role", ["", "Owner", "root", "admin "])
def test_a_word_that_is_no_role_includes_nothing(role: str) -> None:
    assert not any(includes(role, needed) for needed in ROLES)


any_id = st.text(max_size=8)


@pytest.mark.rule("CH-110", "CH-111")
@given(ids=st.lists(any_id, max_size=3))
def test_empty_lists_admit_nobody(ids: list[str]) -> None:
    rules = Rules()
    assert not any(map(rules.admits, ids))
    assert not rules.admits_group(*ids)


@pytest.mark.rule("CH-110")
@given(listed=st.frozensets(any_id.filter(lambda text: text != "*"), max_size=4), asked=any_id)
def test_lists_admit_exactly_what_they_name(listed: frozenset[str], asked: str) -> None:
    rules = Rules(allow=listed, groups=listed)
    assert rules.admits(asked) == (asked in listed) == rules.admits_group(asked)


@pytest.mark.rule("CH-110")
@given(asked=any_id)
def test_only_a_written_star_admits_everybody(asked: str) -> None:
    assert Rules(allow=frozenset({"*"})).admits(asked)
    assert Rules(groups=frozenset({"*"})).admits_group(asked)
    assert not Rules(allow=frozenset({"*"})).admits_group(asked)


facts = st.builds(
    Facts,
    **{field.name: st.booleans() for field in fields(Facts) if field.type == "bool"},
    role=st.sampled_from(["", *ROLES]),
    needed_role=st.sampled_from(["", *ROLES]),
)


@pytest.mark.rule("CH-110", "CH-112", "CH-115")
@given(facts=facts)
def test_whoever_is_answered_was_let_in_on_purpose(facts: Facts) -> None:
    if decide(facts) == "":
        assert facts.group_allowed if facts.in_group else facts.admitted
        assert facts.mentioned or not facts.in_group or not facts.rules.mention_needed
        assert not (facts.own_message or facts.blocked or facts.paused)
        assert facts.bot_listed or not facts.is_bot
    assert decide(facts) in ("", *RULE_NAMES)
