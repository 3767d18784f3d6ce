"""Answers as they were memory: within their bytes, the least recently asked for goes first."""

from nearcast.kinds.aggregates.cache.answer_memory import AnswerMemory


def give(memory: AnswerMemory, key: str, times: int = 2, size: int = 10, version: int = 1) -> None:
    for _ in range(times):
        memory.note(version, key, key.upper(), lambda: size)


def test_an_answer_is_kept_when_it_is_given_twice() -> None:
    memory = AnswerMemory(100)
    give(memory, "a", times=1)
    assert memory.find(1, "a") is None
    give(memory, "a", times=1)
    assert memory.find(1, "a") == "A" and memory.hits == 1


def test_another_version_has_answers_of_its_own() -> None:
    memory = AnswerMemory(100)
    give(memory, "a")
    assert memory.find(2, "a") is None
    give(memory, "b", version=2)
    assert memory.find(2, "b") == "B" and memory.find(1, "a") is None and memory.held == 10


def test_the_least_recently_asked_for_goes_first() -> None:
    memory = AnswerMemory(100)
    for key in "abcdefghij":
        give(memory, key)
    assert memory.find(1, "a") == "A"
    give(memory, "k")
    assert memory.find(1, "b") is None and memory.find(1, "a") == "A" and memory.held == 100


def test_a_large_answer_is_not_kept() -> None:
    memory = AnswerMemory(100)
    give(memory, "a", size=13)
    assert memory.find(1, "a") is None and memory.held == 0


def test_the_size_of_an_answer_that_is_not_kept_is_not_asked_for() -> None:
    memory, asked = AnswerMemory(100), list[str]()

    def size() -> int:
        asked.append("a")
        return 10

    for times in range(3):
        assert len(asked) == (times > 1)
        memory.note(1, "a", "A", size)
    assert asked == ["a"] and memory.held == 10 and memory.find(1, "a") == "A"
