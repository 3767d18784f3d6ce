"""Derived attributes through the pipeline: those of every post, in all kinds of queries, and those stored at ingest."""

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nearcast.common.errors import BadInput
from nearcast.common.geo.distance import haversine_km
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.engine.settings import DAY, Settings
from nearcast.engine.settings_check import check_derived, settings_for
from nearcast.reader.current_answer import read_current
from nearcast.reader.reader import Reader
from nearcast.reader.results import read_results
from nearcast.sources.derive.place import Place
from nearcast.sources.derive.protocol import Given
from nearcast.sources.derive.specs import change, examples, names_of, read_specs
from nearcast.sources.derive.topic import Topic
from nearcast.sources.derive.train_topics import train
from nearcast.sources.world.cities import CITIES
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import commit
from nearcast.storage.sweep import sweep
from tests.engine.harness import MINUTE, NOON, run, step
from tests.engine.oracle import Batch
from tests.storage.posts.test_derived import geohash

MONDAY = 1_699_833_600_000_000  # 2023-11-13
TOKENIZER = Tokenizer()


def post(id_: int, ts: int = NOON, lon: float = 0.0, lat: float = 0.0, text: str = "flood", **more: Any) -> dict:
    return {"id": id_, "ts": ts, "lon": lon, "lat": lat, "text": text, **more}


def posted(posts: list[dict[str, Any]]) -> Batch:
    return Batch([], posts)


def subscribe(id_: str, sql: str) -> dict[str, Any]:
    return {"op": "subscribe", "id": id_, "sql": sql}


WEEK = [post(day, MONDAY + day * DAY + 5 * MINUTE, lon=float(day), text="flood" + "!" * day) for day in range(7)]


def found(state: StateDirectory, sql: str) -> list[dict[str, Any]]:
    return [dict(row) for row in Reader(state).search(sql)]


# -- derived attributes of every post -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("predicate", "ids"),
    [
        ("weekday = 1", {0}),
        ("weekday BETWEEN 6 AND 7", {5, 6}),
        ("length > 9", {5, 6}),
        ("date = '2023-11-14'", {1}),
        ("hour < '2023-11-14T00:00:00Z'", {0}),
        ("minute = '2023-11-15T00:05:00Z'", {2}),
        ("cell IN ('s0000', 's00ju')", {0}),
        ("weekday IS NULL", set()),
    ],
)
def test_a_search_may_ask_for_derived_attributes(predicate: str, ids: set[int], tmp_path: Path) -> None:
    state = run(tmp_path, Settings(), [posted(WEEK[:3]), posted(WEEK[3:])])
    near = f"SELECT * FROM stream WHERE {predicate} ORDER BY DISTANCE(loc, POINT(0, 0)) LIMIT 10"
    assert {row["id"] for row in found(state, f"SELECT * FROM stream WHERE {predicate}")} == ids
    assert {row["id"] for row in found(state, near)} == ids
    terms = found(state, f"SELECT TopK(text, 5) FROM stream WHERE {predicate}")
    assert terms == ([{"term": "flood", "count": len(ids)}] if ids else [])


def test_subscriptions_of_every_kind_may_ask_for_derived_attributes(tmp_path: Path) -> None:
    ops = [
        subscribe("range", "SELECT id, weekday, cell FROM stream WHERE weekday >= 6"),
        subscribe("star", "SELECT * FROM stream WHERE weekday = 6"),
        subscribe(
            "near",
            "SELECT id, weekday FROM stream WHERE length < 8 ORDER BY DISTANCE(loc, POINT(9, 0)) LIMIT 2",
        ),
        subscribe("terms", "SELECT TopK(text) FROM stream WHERE weekday = 3 AND time AFTER '2 days ago' SYNC 1 day"),
    ]
    for name, batches in {
        "before": [Batch(ops, []), posted(WEEK)],
        "caught up": [posted(WEEK[:-1]), Batch(ops, []), posted(WEEK[-1:])],
    }.items():
        if name == "caught up":
            batches[1] = Batch([{**op, "ts": MONDAY} for op in ops], [])
        state = run(tmp_path / name, Settings(), batches, sample=WEEK)
        rows = list(read_results(state))
        matches = {(row["post_id"], row["weekday"], row["cell"]) for row in rows if row["query_id"] == "range"}
        assert matches == {(5, 6, geohash(5, 0)), (6, 7, geohash(6, 0))}
        (star,) = [row for row in rows if row["query_id"] == "star"]
        assert "weekday" not in star and star["text"] == "flood!!!!!"
        assert [(row["id"], row["weekday"]) for row in read_current(Reader(state), "near")] == [(2, 3), (1, 2)]
        if name == "before":
            entered = [row for row in rows if row["query_id"] == "near" and row["kind"] == "enter"]
            assert {row["weekday"] for row in entered} == {2, 3}
        told = [row["rows"] for row in rows if row["query_id"] == "terms" and row["rows"]]
        assert told and all(each == [{"term": "flood", "count": 1}] for each in told)


def test_selected_columns_may_be_derived_and_a_star_does_not_list_them(tmp_path: Path) -> None:
    state = run(tmp_path, Settings(), [posted([post(9, MONDAY, length="long"), *WEEK])])
    sql = "SELECT id, weekday, length FROM stream WHERE weekday = 1"
    rows = [{"id": 0, "weekday": 1, "length": 5}, {"id": 9, "weekday": 1, "length": "long"}]
    assert found(state, sql) == rows
    table = Reader(state).search(sql).to_arrow()
    assert table.column_names == ["id", "weekday", "length"]
    assert table["length"].to_pylist() == ["5", "long"]
    assert "weekday" not in found(state, "SELECT * FROM stream")[0]


def test_the_archive_knows_derived_attributes_too(tmp_path: Path) -> None:
    batches = [posted([each]) for each in WEEK] + [posted([post(99, MONDAY + 40 * DAY)])] * 2
    state = run(tmp_path, Settings(retention=3 * DAY, slot=DAY), batches, sample=WEEK)
    assert state.newest().of("archive")
    rows = found(state, "SELECT id, weekday, length FROM stream WHERE weekday <= 2 AND length < 10")
    assert rows == [{"id": 1, "weekday": 2, "length": 6}, {"id": 0, "weekday": 1, "length": 5}]


# -- what is stored ------------------------------------------------------------------------------------------------


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for a user's module `made_here`, where `python` would find it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield tmp_path / "made_here.py"
    sys.modules.pop("made_here", None)


def derive(given: str) -> Settings:
    return Settings(derive=read_specs(given))


def test_a_place_is_the_nearest_city_and_a_posts_own_one_wins(tmp_path: Path) -> None:
    posts = [
        post(1, lon=2.3, lat=48.8),
        post(2, lon=-74.0, lat=40.7, place="home"),
        post(3, lon=-74.0, lat=40.7, place=5),
    ]
    state = run(tmp_path, derive("place"), [posted(posts[:1]), posted(posts[1:2]), posted(posts[2:])])
    places = {row["id"]: row["place"] for row in found(state, "SELECT id, place FROM stream")}
    assert places == {1: "Paris", 2: "home", 3: 5}
    assert [row["id"] for row in found(state, "SELECT * FROM stream WHERE place = 'Paris'")] == [1]


def test_the_nearest_city_is_that_of_least_great_circle_distance_across_the_antimeridian_and_at_poles() -> None:
    random = np.random.default_rng(3)
    lon = np.concatenate((random.uniform(-180, 180, 300), [180.0, -180.0, 179.9, 0.0, 77.0, 12.0]))
    lat = np.concatenate((np.degrees(np.arcsin(random.uniform(-1, 1, 300))), [-17.0, -17.0, -17.0, 90.0, 90.0, -90.0]))
    base = examples().slice(0, 1)
    posts = pa.concat_tables([base] * len(lon)).combine_chunks()
    posts = posts.set_column(3, "lon", pa.array(lon)).set_column(4, "lat", pa.array(lat))
    names = Place().values(Given.of(posts, TOKENIZER)).to_pylist()
    cities = {city.name: city for city in CITIES}
    for at, name in enumerate(names):
        far = [float(haversine_km(lon[at], lat[at], city.lon, city.lat)) for city in CITIES]
        assert float(haversine_km(lon[at], lat[at], cities[name].lon, cities[name].lat)) <= min(far) + 1e-6
    assert names[300] == names[301] == "Suva"


def test_a_users_function_sees_whole_columns_and_its_values_are_attributes(module: Path, tmp_path: Path) -> None:
    module.write_text(
        "import pyarrow.compute as pc\n"
        "def shout(posts):\n"
        "    assert posts.column_names[:5] == ['id', 'ts', 'lon', 'lat', 'text'], posts.column_names\n"
        "    return pc.utf8_upper(posts['text'])\n"
        "def double(posts):\n"
        "    import pyarrow as pa\n"
        "    price = posts['price'] if 'price' in posts.column_names else pa.nulls(len(posts), pa.int64())\n"
        "    return pc.multiply(price, 2)\n"
    )
    posts = [post(1, price=4), post(2)]
    settings = derive("loud=made_here:shout,twice=made_here:double")
    ops = [subscribe("q", "SELECT loud FROM stream WHERE twice = 8")]
    state = run(tmp_path / "state", settings, [Batch(ops, []), posted(posts)], sample=posts)
    assert [(row["post_id"], row["loud"]) for row in read_results(state)] == [(1, "FLOOD")]
    assert [row["id"] for row in found(state, "SELECT id FROM stream WHERE twice IS NULL")] == [2]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("", "made_here has no f"),
        ("f = 3", "f is not a function"),
        ("import nowhere_to_be_found", "cannot import made_here: ModuleNotFoundError: No module named"),
        ("def f(posts):\n    return [1] * len(posts)", "it must give an Arrow array, not list"),
        ("import pyarrow as pa\ndef f(posts):\n    return pa.array([1])", "it gave 1 values for 3 posts"),
        ("def f(posts):\n    raise ValueError('no\\nway')", "it failed: ValueError: no"),
        ("def f(posts):\n    return posts.upper()", "it is called with one table of posts"),
        ("def f(lon, lat):\n    return lon", "it is called with one table of posts"),
        ("def f(posts):\n    return posts['price']", "only where some post has it"),
    ],
)
def test_a_function_that_cannot_work_is_told_before_a_stream_starts(
    code: str, said: str, module: Path, tmp_path: Path
) -> None:
    module.write_text(code)
    with pytest.raises(BadInput) as told:
        check_derived(StateDirectory(tmp_path / "state"), derive("x=made_here:f"))
    message = str(told.value)
    assert message.startswith("--derive x=made_here:f: ") and said in message and "\n" not in message


def test_a_function_that_fails_later_stops_the_run_and_a_mended_one_loses_nothing(module: Path, tmp_path: Path) -> None:
    module.write_text(
        "def f(posts):\n    if 'bad' in posts['text'].to_pylist():\n        1 / 0\n    return posts['text']\n"
    )
    state = run(tmp_path / "state", derive("x=made_here:f"), [posted([post(1)])])
    before = state.newest()
    with pytest.raises(BadInput, match="--derive x=made_here:f: it failed: ZeroDivisionError"):
        step(state, Settings(), posted([post(2, text="bad")]))
    assert state.newest() == before
    run(tmp_path / "state", derive("none"), [posted([post(2, text="bad")])])
    assert {row["id"]: row["x"] for row in found(state, "SELECT id, x FROM stream")} == {1: "flood", 2: None}


def test_a_state_goes_on_deriving_what_it_did_and_a_change_is_told_in_one_line(tmp_path: Path) -> None:
    posts = [post(n, NOON + n * MINUTE, lon=2.3, lat=48.8) for n in range(4)]
    root = tmp_path / "state"
    state = run(root, derive("place"), [posted(posts[:1])])
    run(root, settings_for(StateDirectory(root), {}), [posted(posts[1:2])])
    assert change(state, read_specs("place")) is None
    assert change(state, ()) == "nothing derived from now on; so far place: posts that are stored stay as they are"
    run(root, settings_for(StateDirectory(root), {"derive": "none"}), [posted(posts[2:3])])
    assert change(state, read_specs("place")) == (
        "place derived from now on; so far nothing: posts that are stored stay as they are"
    )
    run(root, Settings(), [posted(posts[3:])])
    rows = found(state, "SELECT id, place FROM stream")
    assert [row["place"] for row in rows] == [None, None, "Paris", "Paris"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("plce", "no such attribute to derive: give place"),
        ("ts=made_here:f", "ts cannot be the name"),
        ("=made_here:f", "nothing cannot be the name"),
        ("a b=made_here:f", "a b cannot be the name"),
        ("topic=", "nothing behind the = sign"),
        ("place,place", "place is given twice"),
        ("topic", "no such attribute to derive"),
    ],
)
def test_what_cannot_be_derived_is_said_in_one_line(given: str, said: str) -> None:
    with pytest.raises(BadInput) as told:
        read_specs(given)
    assert said in str(told.value) and "\n" not in str(told.value)


# -- topics --------------------------------------------------------------------------------------------------------

THEMES = [" ".join(f"{theme}{n}" for n in range(15)) for theme in ("river", "coffee", "goal", "stage", "train", "snow")]


def theme_posts(count: int, seed: int) -> tuple[pa.Table, np.ndarray]:
    """Posts of four to nine words on one theme, every third with one on another."""
    random = np.random.default_rng(seed)
    texts, about = [], random.integers(0, len(THEMES), count)
    for n, theme in enumerate(about):
        words = list(random.choice(THEMES[theme].split(), random.integers(4, 9)))
        if n % 3 == 0:
            words.append(random.choice(THEMES[(theme + 1) % len(THEMES)].split()))
        texts.append(" ".join(words))
    return pa.table({"text": pa.array(texts)}), about


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Topic, Path]:
    pytest.importorskip("sklearn")
    path = tmp_path_factory.mktemp("model") / "topics.npz"
    train([theme_posts(1500, 1)[0]], topics=6, passes=8).save(path)
    return Topic.load(path), path


def test_a_model_tells_themes_apart(model: tuple[Topic, Path]) -> None:
    posts, about = theme_posts(500, 2)
    topics = model[0].topics(*TOKENIZER.terms(posts["text"]))
    tops = {frozenset(words) for words in model[0].top_words(15)}
    assert tops == {frozenset(theme.split()) for theme in THEMES}
    of = [int(np.bincount(topics[about == theme], minlength=6).argmax()) for theme in range(6)]
    assert sorted(of) == list(range(6))
    assert (topics == np.array(of)[about]).mean() > 0.97


def test_topics_are_those_of_scikit_learn_up_to_ties(model: tuple[Topic, Path]) -> None:
    from scipy.sparse import csr_matrix
    from sklearn.decomposition import LatentDirichletAllocation

    random = np.random.default_rng(5)
    words = np.array([f"w{n}" for n in range(400)])
    texts = [
        " ".join(random.choice(words[20 * t : 20 * t + 60], random.integers(1, 15)))
        for t in range(17)
        for _ in range(60)
    ]
    learned = train([pa.table({"text": texts})], topics=12, passes=2)
    terms, offsets = TOKENIZER.terms(pa.array(texts))
    known = np.isin(terms, learned.terms)
    places = np.searchsorted(learned.terms, terms[known])
    rows = np.repeat(np.arange(len(texts)), np.diff(offsets))[known]
    matrix = csr_matrix((np.ones(len(rows)), (rows, places)), (len(texts), len(learned.terms)))
    theirs = LatentDirichletAllocation(12, random_state=0).partial_fit(matrix)
    theirs.components_, theirs.doc_topic_prior_ = learned.components, learned.prior
    from scipy.special import digamma

    theirs.exp_dirichlet_component_ = np.exp(
        digamma(learned.components) - digamma(learned.components.sum(axis=1, keepdims=True))
    )
    shares = theirs.transform(matrix)
    topics = learned.topics(terms, offsets)
    some = topics >= 0
    assert np.array_equal(some, np.diff(matrix.indptr) > 0)
    chosen = shares[np.flatnonzero(some), topics[some]]
    assert (chosen >= shares[some].max(axis=1) - 1e-9).mean() >= 0.95


def test_posts_without_known_words_have_no_topic_and_the_model_lives_in_the_state(
    model: tuple[Topic, Path], tmp_path: Path
) -> None:
    copy = tmp_path / "mine.npz"
    copy.write_bytes(model[1].read_bytes())
    posts = [post(1, text="river1 river2, RIVER3 on the river4"), post(2, text="nothing known"), post(3, text="")]
    root = tmp_path / "state"
    state = run(root, derive(f"topic={copy}"), [posted(posts)])
    copy.unlink()
    run(root, Settings(), [posted([post(4, NOON + 1, text="#river5 river6")])])
    topics = {row["id"]: row["topic"] for row in found(state, "SELECT id, topic FROM stream")}
    assert topics[1] == topics[4] and topics[1] in range(6) and topics[2] is None and topics[3] is None
    assert [row["id"] for row in found(state, f"SELECT id FROM stream WHERE topic = {topics[1]}")] == [4, 1]
    assert names_of(state.newest().settings["derive"]) == ["topic"]
    assert change(state, read_specs(f"topic={model[1]}")) is None


def test_a_model_leaves_the_state_with_the_last_manifest_that_names_it(tmp_path: Path) -> None:
    state = run(tmp_path, Settings(), [posted([post(1)])])
    before = state.newest()
    (state.root / "models").mkdir()
    for name in ("old", "new", "crashed"):
        (state.root / f"models/{name}.npz").write_bytes(b"")
    for name in ("old", "new"):
        settings = {**before.settings, "derive": ["place", f"topic=models/{name}.npz"]}
        before = commit(state.manifests, before, replace(before, settings=settings))
    sweep(state)
    assert {path.stem for path in (state.root / "models").iterdir()} == {"old", "new"}
    sweep(state, grace=0.0, now=time.time() + 1)
    assert {path.stem for path in (state.root / "models").iterdir()} == {"new"}


def test_a_file_that_is_no_model_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "text.npz").write_text("no model")
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    for name, said in (
        ("text.npz", "no model of topics"),
        ("other.npz", "no model of topics"),
        ("gone.npz", "not there"),
    ):
        with pytest.raises(BadInput, match=said) as told:
            check_derived(StateDirectory(tmp_path / "state"), derive(f"topic={tmp_path / name}"))
        assert "\n" not in str(told.value)


def test_training_says_what_is_missing() -> None:
    pytest.importorskip("sklearn")
    with pytest.raises(BadInput, match="no posts"):
        train([])
    with pytest.raises(BadInput, match="too few words in common"):
        train([pa.table({"text": ["", ""]})])


def test_training_without_scikit_learn_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.decomposition", None)
    with pytest.raises(BadInput, match=r"pip install 'nearcast\[topics\]'"):
        train([theme_posts(10, 0)[0]])
