"""What a run may choose, and what it reads. Imports nothing heavy: it travels to every process that Spark starts."""

from dataclasses import dataclass, field

DAY = 86_400_000_000
KEEP_SIZE = "keep_size"  # where they have what the last run would keep of posts
LEDGER_SINCE = "ledger_since"  # and from which time on the ledger has all posts
DERIVE = "derive"  # where a manifest's settings have what the state derives
IDF_PERIOD = "idf_period"  # where they have how often a version of the term statistics is made


@dataclass(frozen=True)
class Settings:
    """How a state is worked on. Times in microseconds."""

    workers: int = 2
    router: str | None = None  # by name; None: the state's own, a uniform grid for a new one
    keep: str = "posts"  # or "none"
    index: str = "pyramid"  # or "gi2"
    idf_period: int = DAY  # of stream time, after which words weigh by new statistics; fixed when a state is made
    keep_accents: bool = False
    max_future: int | None = DAY
    retention: int | None = None
    keep_results: int | None = None
    keep_size: int | None = None  # bytes of posts and of the archive: the oldest slots leave when they are more
    slot: int = 3 * DAY
    lateness: int = 0
    merge: bool = True
    stop_words: tuple[str, ...] = ()  # that reports of frequent terms leave out
    balance: str = "auto"  # or a strategy by name (`engine.balance_strategies`), or "off"
    derive: tuple[str, ...] | None = None  # attributes, as `sources.derive.specs` reads them; None: as the state does
    topk_distribution: str = (
        "auto"  # of subscribers by relevance over workers (`kinds.relevance.distributions.registry`)
    )
    ratio: float | None = None  # L_max / L_min from which on it acts; None: as `engine.balance_strategies` says


@dataclass(frozen=True)
class Inputs:
    """What a run reads: specs of sources for posts and for ops, as `sources.registry` opens them.

    `ops_beside` says that ops come from elsewhere too, and may be in the same batch as posts.
    """

    posts: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    mapping: dict[str, str] = field(default_factory=dict)
    batch_posts: int = 800_000
    splits: int = 2
    ops_beside: bool = False
