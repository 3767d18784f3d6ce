"""Answers as they were given: within their bytes, the least recently asked for goes first."""

from nearcast.kinds.aggregates.cache.answer_memory import Given


def give(given: Given, key: str, times: int = 2, size: int = 10, version: int = 1) -> None:
    for _ in range(times):
        given.note(version, key, key.upper(), lambda: size)


def test_an_answer_is_kept_when_it_is_given_twice() -> None:
    given = Given(100)
    give(given, "a", times=1)
    assert given.find(1, "a") is None
    give(given, "a", times=1)
    assert given.find(1, "a") == "A" and given.hits == 1


def test_another_version_has_answers_of_its_own() -> None:
    given = Given(100)
    give(given, "a")
    assert given.find(2, "a") is None
    give(given, "b", version=2)
    assert given.find(2, "b") == "B" and given.find(1, "a") is None and given.held == 10


def test_the_least_recently_asked_for_goes_first() -> None:
    given = Given(100)
    for key in "abcdefghij":
        give(given, key)
    assert given.find(1, "a") == "A"
    give(given, "k")
    assert given.find(1, "b") is None and given.find(1, "a") == "A" and given.held == 100


def test_a_large_answer_is_not_kept() -> None:
    given = Given(100)
    give(given, "a", size=13)
    assert given.find(1, "a") is None and given.held == 0


def test_the_size_of_an_answer_that_is_not_kept_is_not_asked_for() -> None:
    given, asked = Given(100), list[str]()

    def size() -> int:
        asked.append("a")
        return 10

    for times in range(3):
        assert len(asked) == (times > 1)
        given.note(1, "a", "A", size)
    assert asked == ["a"] and given.held == 10 and given.find(1, "a") == "A"
