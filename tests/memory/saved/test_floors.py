"""The measured floor: what is stored of an embedder, and when one is no good for saved memories."""

from __future__ import annotations

import numpy as np
import pytest

from memory.database import Database
from memory.embedders import background_set, calibration
from memory.embedders.builtin import builtin_of, fast_encoder, nano_e5
from memory.embedders.calibration import ROWS, Calibration, calibrate
from memory.embedders.hashed import hash_embedder
from memory.ports import Embedder
from memory.words import tokens
from tests.conftest import FakeClock


@pytest.mark.rule("SM-33", "SM-98")
@pytest.mark.parametrize(("make", "suitable"), [(fast_encoder, True), pytest.param(nano_e5, True, marks=pytest.mark.slow), (hash_embedder, False)])
async def test_an_embedder_that_does_not_tell_related_pairs_from_others_is_unsuitable(make: type[Embedder], suitable: bool) -> None:
    embedder = make()
    made = await calibrate(embedder)
    assert len(made.related) == len(background_set.background().pairs)
    assert made.is_suitable(made.floor(ROWS, 60)) is suitable
    await embedder.close()


@pytest.mark.rule("SM-33")
@pytest.mark.parametrize(("related", "floor", "suitable"), [((0.1, 0.5, 0.9), 0.49, True), ((0.1, 0.5, 0.9), 0.5, False), ((), -1.0, False)])
def test_a_floor_that_reaches_the_median_of_related_pairs_is_too_high(related: tuple[float, ...], floor: float, suitable: bool) -> None:
    zero = np.zeros(2, dtype=np.float32)
    made = Calibration(dimension=2, documents_mean=zero, questions_mean=zero, best={ROWS: (0.5,)}, related=related)
    assert made.is_suitable(floor) is suitable


@pytest.mark.rule("SM-33")
async def test_what_was_measured_is_kept_and_figures_of_before_are_measured_again(database: Database, clock: FakeClock) -> None:
    embedder = hash_embedder(16)
    made = await calibrate(embedder)
    await database.write(lambda connection: calibration.keep(connection, embedder.fingerprint, made, clock()))
    kept = await database.read(lambda connection: calibration.read(connection, embedder.fingerprint))
    assert kept is not None and (kept.related, kept.best) == (made.related, made.best)
    without = {str(among): list(best) for among, best in made.best.items()}
    table = calibration.calibrations
    await database.write(lambda connection: connection.execute(table.update().values(best=without)))
    assert await database.read(lambda connection: calibration.read(connection, embedder.fingerprint)) is None
    await embedder.close()


@pytest.mark.rule("RS-175", "SM-32")
@pytest.mark.parametrize("word", ["the", "の", "は", "的"])
def test_a_particle_of_one_language_is_common_though_there_are_two_more(word: str) -> None:
    (token,) = tokens(word)
    assert background_set.holding()[token] > 0.2 * len(background_set.background().passages)


@pytest.mark.rule("SM-95")
def test_a_built_in_embedder_is_found_again_by_its_name() -> None:
    for made in (fast_encoder(), nano_e5()):
        again = builtin_of(made.fingerprint)
        assert again is not None and again.label == made.label
    assert builtin_of("openai/some-model") is None
