"""Invented names: pronounceable, in the sound of a language, all distinct.

They are the long tail of the vocabulary: streets, shops, people, bands, brands, towns.
"""

import numpy as np

_SOUNDS: dict[str, tuple[str, str, str]] = {  # onsets, vowels, endings
    "en": (
        "b br c ch cl d dr f fl g gr h k l m n p pr r s sh st t th tr v w",
        "a e i o u ea oo ai",
        "ton ford wood bridge field ley mouth ham worth dale well gate er son ick ard en ow",
    ),
    "es": (
        "b c ch d f g j l ll m n p qu r s t v tr gr",
        "a e i o u ia ue",
        "ales osa ero illa anza ito eda ura ano ora",
    ),
    "pt": ("b c d f g j l m n p r s t v x lh br", "a e i o u ei ou", "inha eira ópolis aba uba anga eiro oso al im"),
    "fr": ("b c ch d f g j l m n p r s t v gl br", "a e i o ou eau oi", "ville mont ard ette ois elle ac in eux ière"),
    "de": (
        "b br d f g h k kr l m n r s sch st t w z",
        "a e i o u ei au",
        "dorf burg heim stein bach au feld mann er hof",
    ),
    "it": ("b c d f g l m n p r s t v z gn", "a e i o u ia", "ello ino etta one ano elli ucci ara enza olo"),
    "tr": ("b c d g h k l m n p r s t y z", "a e ı i o u ü ö", "köy tepe pınar lar dere oğlu han kent li baş"),
    "ja": ("k s t n h m y r w g z b sh", "a i u e o ou", "gawa machi yama da mura shima kawa no oka saki"),
    "id": ("b c d g j k l m n p r s t w ng", "a e i o u", "ang sari jaya wati rejo asih an ati ung aya"),
    "ru": ("b d g k l m n p r s t v z", "a e i o u", "ov ino sk evka grad ovo ich enko ets aya"),
    "zh": (
        "b d f g h j l m n q s sh t w x y zh",
        "a ai an ang ao e en i in ing ong u",
        "zhou shan men he jie lu ning hai",
    ),
    "ar": ("b d f h j k kh l m n q r s sh t w z", "a i u aa", "abad ani iya een ah our eddin am as if"),
}


def invent(count: int, sound: str, rng: np.random.Generator, taken: set[str]) -> list[str]:
    """`count` new lower-case names in the sound of a language, none of them in `taken`, to which they are added."""
    onsets, vowels, endings = (part.split() for part in _SOUNDS[sound])
    names: list[str] = []
    syllables = 1
    while len(names) < count:
        wanted = 2 * (count - len(names)) + 16
        parts = [
            np.array(choices, dtype=object)[rng.integers(len(choices), size=wanted)]
            for choices in [onsets, vowels] * syllables + [endings]
        ]
        for name in sum(parts[1:], parts[0]):
            if name not in taken and len(names) < count:
                taken.add(name)
                names.append(name)
        syllables = min(syllables + 1, 4)
    return names
