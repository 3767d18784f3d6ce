"""Settings are read and checked in one place, whoever gives them."""

from pathlib import Path
from typing import Any

import pytest

from nearcast.common.errors import BadInput
from nearcast.engine.settings import DAY, Settings
from nearcast.engine.settings_check import settings_for
from nearcast.storage.directory import StateDirectory

MADE_WITH = {"keep": "posts", "index": "gi2", "keep_accents": True, "idf_period": DAY // 2}


@pytest.fixture
def fresh(tmp_path: Path) -> StateDirectory:
    return StateDirectory(tmp_path / "new")


@pytest.fixture
def made(tmp_path: Path) -> StateDirectory:
    state = StateDirectory(tmp_path / "state")
    state.create({**MADE_WITH, "keep_size": 5, "derive": ["place"]})
    return state


def test_what_is_not_given_is_the_default(fresh: StateDirectory) -> None:
    assert settings_for(fresh, {}) == Settings() == settings_for(fresh, dict.fromkeys(("keep", "workers", "router")))


def test_what_is_not_given_is_as_the_state_was_made(made: StateDirectory) -> None:
    assert settings_for(made, {"keep": None, "workers": 5}) == Settings(workers=5, **MADE_WITH)


def test_texts_and_numbers_mean_the_same(fresh: StateDirectory) -> None:
    texts = {"retention": "30d", "lateness": "5m", "max_future": "none", "keep_size": "20GB", "derive": "place"}
    numbers = {"retention": 30 * DAY, "lateness": DAY // 288, "keep_size": 20 * 10**9, "derive": ["place"]}
    assert settings_for(fresh, texts) == settings_for(fresh, {**numbers, "max_future": "never"})
    assert settings_for(fresh, texts).max_future is None
    assert settings_for(fresh, {"stop_words": "english"}).stop_words[:2] == ("a", "about")
    assert settings_for(fresh, {"stop_words": ["rain"]}).stop_words == ("rain",)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"keep": "some"}, "--keep 'some' is unknown: give posts or none"),
        ({"index": "rtree"}, "--index 'rtree' is unknown: give pyramid or gi2"),
        ({"router": "magic"}, "there is no router 'magic'"),
        ({"balance": "magic"}, "there is no --balance magic"),
        ({"workers": 0}, "--workers 0: give a number from 1 to 256"),
        ({"idf_period": "10ms"}, "--idf-period 10ms is too short"),
        ({"retention": "a month"}, "--retention 'a month' is not a length of time"),
        ({"keep_size": "20"}, "--keep-size '20' is no size"),
        ({"derive": "mood"}, "--derive mood"),
        ({"retentoin": "30d"}, "there is no setting retentoin"),
    ],
)
def test_what_cannot_be_is_told_in_one_line(fresh: StateDirectory, given: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput) as told:
        settings_for(fresh, given)
    assert message in str(told.value) and "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("given", "option"),
    [
        ({"index": "pyramid"}, "--index pyramid: "),
        ({"keep_accents": False}, "--fold-accents: "),
        ({"keep": "none"}, "--keep none: "),
        ({"idf_period": "1d"}, "--idf-period 1d: "),
    ],
)
def test_what_a_state_was_made_with_cannot_change(made: StateDirectory, given: dict[str, Any], option: str) -> None:
    with pytest.raises(BadInput, match="cannot change") as told:
        settings_for(made, given)
    assert str(told.value).startswith(option)
