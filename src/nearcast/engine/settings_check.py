"""The one place where settings are read and checked: for `nearcast run`, `nearcast demo` and `nc.run` alike.

A setting goes by its name in `Settings`, and in messages by the option of the command: `keep_size`, `--keep-size`.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from nearcast.common.durations import UNITS, duration_of, duration_text, optional_duration_of
from nearcast.common.errors import BadInput
from nearcast.common.sizes import size_of
from nearcast.engine.balance_strategies import check_balanced
from nearcast.engine.settings import DERIVE, IDF_PERIOD, KEEP_SIZE, Settings
from nearcast.partitioning.routers.registry import DEFAULT, router_named
from nearcast.reader.stop_words import words_of
from nearcast.sources.derive.specs import check, read_specs
from nearcast.storage.directory import StateDirectory

FIXED = ("keep", "index", "keep_accents", IDF_PERIOD)  # what a state was made with, it stays with
CHOICES = {"keep": ("posts", "none"), "index": ("pyramid", "gi2")}
MOST_WORKERS = 256
_READERS: dict[str, Callable[[Any, str], Any]] = {
    "retention": optional_duration_of,
    "keep_results": optional_duration_of,
    "max_future": optional_duration_of,
    "lateness": duration_of,
    IDF_PERIOD: duration_of,
    KEEP_SIZE: size_of,
    DERIVE: lambda given, option: read_specs(given),
    "stop_words": lambda given, option: words_of(given) if isinstance(given, str) else tuple(given),
}


def settings_for(state: StateDirectory, given: Mapping[str, Any]) -> Settings:
    """The settings of a run on a state, checked: what is not given, or None, is as the state was made, or the default.

    Lengths of time and sizes are texts ("30d", "20GB") or numbers (microseconds, bytes).
    """
    state.refuse_if_not_a_state()
    known = {each.name for each in fields(Settings)}
    for name in given:
        if name not in known:
            raise BadInput(f"there is no setting {name}: those of a run are {', '.join(sorted(known))}")
    chosen = {name: _read(name, value) for name, value in given.items() if value is not None}
    check_choices(chosen)
    made_with = _made_with(state)
    check_fixed(state, chosen, made_with)
    settings = Settings(**{**made_with, **chosen})
    router_named(settings.router or DEFAULT)
    check_balanced(state, settings.balance, settings.router)
    return settings


def check_choices(chosen: Mapping[str, Any]) -> None:
    """Values that no state could have."""
    for name, allowed in CHOICES.items():
        if chosen.get(name, allowed[0]) not in allowed:
            raise BadInput(f"{option_of(name)} {chosen[name]!r} is unknown: give {' or '.join(allowed)}")
    if chosen.get(IDF_PERIOD, UNITS["s"]) < UNITS["s"]:
        raise BadInput(f"--idf-period {duration_text(chosen[IDF_PERIOD])} is too short: give a second or more")
    if not 1 <= chosen.get("workers", 1) <= MOST_WORKERS:
        raise BadInput(f"--workers {chosen['workers']}: give a number from 1 to {MOST_WORKERS}")


def check_fixed(state: StateDirectory, chosen: Mapping[str, Any], made_with: Mapping[str, Any]) -> None:
    """Nothing is asked for that this state was made without."""
    for name, value in made_with.items():
        if chosen.get(name, value) != value:
            raise BadInput(
                f"{_spelled_option(name, chosen[name])}: {state.root} was made with {name.replace('_', ' ')} = "
                f"{duration_text(value) if name == IDF_PERIOD else value}, and that cannot change; "
                "leave the option out, or start a new state directory"
            )


def check_derived(state: StateDirectory, settings: Settings) -> None:
    """What is to be derived works: a model that is none, or a function that fails, is told before anything starts."""
    specs = settings.derive
    if specs is None:
        specs = tuple(state.newest().settings.get(DERIVE, ())) if state.exists() else ()
    check(str(state.root), specs)


def option_of(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _read(name: str, value: Any) -> Any:
    return _READERS[name](value, option_of(name)) if name in _READERS else value


def _made_with(state: StateDirectory) -> dict[str, Any]:
    settings = state.newest().settings if state.exists() else {}
    return {name: settings[name] for name in FIXED if name in settings}


def _spelled_option(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return option_of(name) if value else "--fold-accents"
    return f"{option_of(name)} {duration_text(value) if name == IDF_PERIOD else value}"
