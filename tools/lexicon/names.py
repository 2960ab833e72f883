"""Compiles the lists of names: ``python -m tools.lexicon.names --wordnet FOLDER --output FILE``.

If WordNet writes a word with a capital in all its senses, the word is a name in any position. If
the word is a place in one sense and an ordinary word in another, it is a name after `in`, `to` and
the like. Kinds of animals and plants are left out, because nobody writes them in requests.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tools.lexicon.wndb import WordNet, read_wordnet

OWN: Final = Path(__file__).parent / "own" / "names.txt"
#: Files of lexicographers: animals and plants, whose names in Latin have capitals; and places.
_SPECIES: Final = frozenset({"05", "20"})
_PLACE: Final = "15"


def read_own(path: Path = OWN) -> dict[str, list[str]]:
    """Read the package's own lists: lines of a name, a colon and words."""
    found: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, _, words = line.partition(":")
            found[name] = words.split()
    return found


def lexicographer_files(folder: Path) -> dict[int, str]:
    """Return for each noun's meaning, by its offset, the file that it comes from."""
    found = {}
    for line in (folder / "data.noun").read_text(encoding="ascii").splitlines():
        if not line.startswith("  "):
            offset, number, _ = line.split(" ", 2)
            found[int(offset)] = number
    return found


def names(
    wordnet: WordNet, files: Mapping[int, str], own: Mapping[str, list[str]]
) -> dict[str, list[str]]:
    """Return the lists that ship, each sorted."""
    proper: dict[str, set[str]] = defaultdict(set)
    common: set[str] = set()
    for identity, synset in wordnet.synsets.items():
        for spelled in synset.words:
            word = spelled.partition("(")[0]
            if not word.isalpha() or word.isupper():
                continue
            if word[0].isupper():
                kind = files[identity.offset] if identity.pos == "noun" else ""
                proper[word.lower()].add(kind)
            else:
                common.add(word)
    own_words = {word for name in ("places", "given", "family", "never") for word in own[name]}
    always, places = set(own["always"]), set(own["places"])
    for word, kinds in proper.items():
        plural = word.endswith("s") and word[:-1] in common
        if word in common or plural:
            places.update([word] if _PLACE in kinds else [])
        elif len(word) > 2 and not kinds <= _SPECIES and word not in own_words:
            always.add(word)
    places -= {*own["never"], *always}
    return {
        "always": sorted(always),
        "places": sorted(places),
        "given": sorted({*own["given"]} - always),
        "family": sorted({*own["family"]} - always),
    }


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wordnet", type=Path, required=True, help="folder with data.noun, ...")
    parser.add_argument("--output", type=Path, required=True, help="file to write")
    options = parser.parse_args()
    found = names(read_wordnet(options.wordnet), lexicographer_files(options.wordnet), read_own())
    lines = [f"{name}: {' '.join(words)}\n" for name, words in found.items()]
    options.output.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
