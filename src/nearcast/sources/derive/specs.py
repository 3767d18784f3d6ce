"""Which attributes a state derives: from the words of `--derive` to columns of posts."""

import hashlib
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.errors import BadInput
from nearcast.common.post_schema import ATTRIBUTE_KINDS, BASE_FIELDS, BASE_NAMES, attribute_column, attribute_of
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.sources.derive.place import Place
from nearcast.sources.derive.protocol import Deriver, Given
from nearcast.sources.derive.topic import Topic
from nearcast.sources.derive.user_function import Own
from nearcast.sources.records import attribute
from nearcast.storage.directory import StateDirectory

BUILT_IN: dict[str, Callable[[], Deriver]] = {"place": Place}
FORMS = f"{', '.join(BUILT_IN)}, topic=MODEL or name=package.module:function"
RESERVED = BASE_NAMES | {"loc", "time"}
MODELS = "models"  # folder of a state
EXAMPLES = [("flash flood in the subway", 151.2, -33.87, 1), ("", 0.0, 90.0, 0), ("静か café #now", -180.0, 0.0, -1)]


def read_specs(given: str | Sequence[str]) -> tuple[str, ...]:
    """'place,topic=model.npz' as one spec an attribute, checked as far as words go; 'none' is none of them."""
    texts = [given] if isinstance(given, str) else list(given)
    specs = [part.strip() for text in texts for part in text.split(",") if part.strip()]
    if specs == ["none"]:
        return ()
    seen: set[str] = set()
    for spec in specs:
        name, what = _parts(spec)
        if not re.fullmatch(r"[^\W\d]\w*", name) or name.lower() in RESERVED:
            raise BadInput(f"--derive {spec}: {name or 'nothing'} cannot be the name of an attribute")
        if what is None and name not in BUILT_IN:
            raise BadInput(f"--derive {spec}: there is no such attribute to derive: give {FORMS}")
        if name in seen:
            raise BadInput(f"--derive: {name} is given twice")
        seen.add(name)
    return tuple(sorted(_from_here(spec) for spec in specs))


def names_of(specs: Sequence[str]) -> list[str]:
    """The attributes that specs derive."""
    return [_parts(spec)[0] for spec in specs]


def recorded(root: Path, specs: Sequence[str], copy: bool = True) -> tuple[str, ...]:
    """The specs as a state records them: a model is copied into the state, under a name that says what is in it."""
    out = []
    for spec in specs:
        name, what = _parts(spec)
        if what is not None and not is_function(what):
            path = root / what
            try:
                data = path.read_bytes()
            except OSError as error:
                raise BadInput(f"--derive {spec}: cannot read {what}: {(error.strerror or '').lower()}") from None
            inside = f"{MODELS}/{hashlib.sha256(data).hexdigest()[:16]}.npz"
            if copy and not (root / inside).exists():
                (root / MODELS).mkdir(parents=True, exist_ok=True)
                (root / f"{inside}.new").write_bytes(data)
                (root / f"{inside}.new").rename(root / inside)
            spec = f"{name}={inside}"
        out.append(spec)
    return tuple(sorted(out))


def change(state: StateDirectory, specs: Sequence[str]) -> str | None:
    """One line on what an existing state derives from now on, where that is something else than so far."""
    if not state.exists():
        return None
    before, after = set(state.newest().settings.get("derive", ())), set(recorded(state.root, specs, copy=False))
    if before == after:
        return None
    told = [f"{', '.join(names_of(sorted(after)))} derived from now on" if after else "nothing derived from now on"]
    told += [f"so far {', '.join(names_of(sorted(before)))}" if before else "so far nothing"]
    return f"{'; '.join(told)}: posts that are stored stay as they are"


@lru_cache(maxsize=8)
def open_derivers(root: str, specs: tuple[str, ...]) -> tuple[tuple[str, Deriver], ...]:
    """What derives each attribute; models are read once a process."""
    return tuple((_parts(spec)[0], _deriver(Path(root), spec)) for spec in specs)


def check(root: str, specs: tuple[str, ...]) -> None:
    """Derive attributes of a few made-up posts: what cannot work is said before a stream starts, and what is compiled
    is compiled.
    """
    if specs:  # reading the examples' words compiles for seconds, the first time
        derive_all(open_derivers(root, specs), Given.of(examples(), Tokenizer()))


def examples() -> pa.Table:
    texts, lon, lat, ts = zip(*EXAMPLES, strict=True)
    columns = [list(range(len(texts))), [None] * len(texts), ts, lon, lat, texts]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, BASE_FIELDS, strict=True)], pa.schema(BASE_FIELDS))


def derive_all(derivers: Sequence[tuple[str, Deriver]], given: Given) -> pa.Table:
    """The posts with the derived attributes as columns of the model; a post's own value wins."""
    columns = dict(zip(given.posts.column_names, given.posts.columns, strict=True))
    for name, deriver in derivers if len(given.posts) else ():
        made = deriver.values(given)
        if pa.types.is_null(made.type):
            continue
        kind, values = attribute(made)
        target = attribute_column(name, kind)
        for other in ATTRIBUTE_KINDS:
            own = columns.get(attribute_column(name, other))
            if own is not None:
                values = pc.if_else(pc.is_valid(own), pa.scalar(None, values.type), values)
        values = pc.coalesce(columns[target], values) if target in columns else values
        if values.null_count < len(values):
            columns[target] = values
    attributes = sorted(column for column in columns if attribute_of(column) is not None)
    rest = [column for column in columns if attribute_of(column) is None]
    return pa.table({column: columns[column] for column in (*rest, *attributes)})


def derived(
    root: str, specs: tuple[str, ...], posts: pa.Table, words: tuple[np.ndarray, np.ndarray], tokenizer: Tokenizer
) -> pa.Table:
    """Posts with what their state derives."""
    return derive_all(open_derivers(root, specs), Given(posts, *words, tokenizer)) if specs else posts


def _from_here(spec: str) -> str:
    """A model's path as seen from anywhere."""
    name, what = _parts(spec)
    return spec if what is None or is_function(what) else f"{name}={Path(what).absolute()}"


def is_function(what: str) -> bool:
    return re.fullmatch(r"[\w.]+:[\w.]+", what) is not None


def _parts(spec: str) -> tuple[str, str | None]:
    name, equals, what = (piece.strip() for piece in spec.partition("="))
    if equals and not what:
        raise BadInput(f"--derive {spec}: nothing behind the = sign: give {FORMS}")
    return name, what if equals else None


def _deriver(root: Path, spec: str) -> Deriver:
    name, what = _parts(spec)
    if what is None:
        return BUILT_IN[name]()
    return Own(name, what) if is_function(what) else Topic.load(root / what)
