"""Checks that text whose letters carry the meaning is never edited: ``python -m tools.exact``.

The tool reads texts in which such spans are marked, draws variants of each text, and names the
variants in which a span has changed. The check only looks at the texts, and knows nothing of locks.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from pytest_dstfuzz.dialogue.dialogues import BeliefState, Dialogue, DialogueSet, Turn
from pytest_dstfuzz.perturb.engine import Perturber
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.locks import Locks
from pytest_dstfuzz.relations.registry import RELATIONS, relation_by_name
from pytest_dstfuzz.relations.relation import BySearch, Inapplicable, Scenes, begin, list_rewrites

#: The texts of the tests.
_FOLDER: Final = Path(__file__).parents[1] / "tests" / "perturb"
TEXTS: Final = _FOLDER / "exact_texts.tsv"
#: Those that were written when the locks were done.
LATER: Final = _FOLDER / "exact_texts_later.tsv"
#: How variants are drawn: profile and search.
WAYS: Final = ("natural noise", "natural random", "strict random")
#: METAL's perturbations lock nothing, as they are published.
_UNLOCKED: Final = "metal-"
#: Kinds of texts with names alone.
_NAMES: Final = ("name", "nfd")
_MARKED: Final = re.compile("⟦(.*?)⟧", re.DOTALL)
_BRACKETS: Final = str.maketrans("", "", "⟦⟧")


class ExactText(NamedTuple):
    """An utterance with spans that no edit may change."""

    kind: str
    text: str
    spans: tuple[str, ...]

    def damaged(self, variant: str, *, in_order: bool = True) -> str:
        """Return the first span that a variant lacks, or ``""`` if it has all."""
        at = 0
        for span in self.spans:
            found = _standing(span).search(variant, at)
            if found is None:
                return span
            at = found.end() if in_order else 0
        return ""


def _standing(span: str) -> re.Pattern[str]:
    """Return a pattern that finds a span which no letter touches."""
    left = r"(?<![^\W_])" if span[0].isalnum() else ""
    right = r"(?![^\W_])" if span[-1].isalnum() else ""
    return re.compile(left + re.escape(span) + right)


def read_texts(path: Path = TEXTS) -> list[ExactText]:
    r"""Read lines with a kind, a tab and a text with ``⟦spans⟧``. ``\n`` in it ends a line."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        kind, marked = line.split("\t")
        marked = marked.replace(r"\n", "\n")
        found.append(ExactText(kind, marked.translate(_BRACKETS), tuple(_MARKED.findall(marked))))
    return found


def variants(text: str, way: str, perturber: Perturber, seed: int, most: int) -> list[str]:
    """Return at most ``most`` valid variants of a text, drawn in one of the `WAYS`."""
    source = perturber.prepare(text)
    rng = np.random.default_rng(seed)
    found = []
    for draw in range(4 * most):
        if way.endswith("noise"):
            noisy = source.support.noisy if source.support else None
            # At a high rate, so that few draws leave the text as it is.
            edits = noisy.draw(rng, 0.5) if noisy and noisy.sites else ()
            variant = perturber.remake(source, edits)
        else:
            variant = perturber.apply(source, perturber.space.sample(rng, 1 + draw % 3))
        if variant.status == "valid":
            found.append(variant.text)
        if len(found) == most:
            break
    return found


def rewrites(texts: Sequence[ExactText]) -> Iterator[tuple[str, ExactText, str]]:
    """Yield relation, text and rewrite, for all relations that keep the answer and obey locks."""
    turns = [
        Dialogue(f"exact-{number}", (Turn(0, "", one.text, BeliefState()),))
        for number, one in enumerate(texts)
    ]
    data = DialogueSet("exact", "test", tuple(turns), None)
    lexicon = load_lexicon()
    scenes = Scenes(data, lexicon, Locks(lexicon), 0)
    for name in RELATIONS.shipped:
        relation = relation_by_name(name)
        kept = relation.side == "should-not-change" and relation.edits == "own"
        if not kept or relation.unit != "turn" or name.startswith(_UNLOCKED):
            continue
        for one, dialogue in zip(texts, turns, strict=True):
            begun = begin(relation, scenes.labelled(name, dialogue, 0))
            if not isinstance(begun, Inapplicable | BySearch):
                for rewrite in list_rewrites(begun):
                    yield name, one, rewrite.seen.user


def check(
    texts: Sequence[ExactText], way: str, total: int
) -> tuple[int, list[tuple[str, str, str, str]]]:
    """Return how many variants were drawn in one of the `WAYS`, and which are damaged."""
    if way == "relations":
        made = list(rewrites(texts))
    else:
        perturber = Perturber(load_lexicon(), validity=way.partition(" ")[0])
        each = -(-total // len(texts))
        made = [
            (way, one, text)
            for number, one in enumerate(texts)
            for text in variants(one.text, way, perturber, number, each)
        ]
    # In `natural`, a name that is also a colour or the like takes slips that readers recover.
    slips = load_lexicon().value_words if way.startswith("natural") else ()
    broken = [
        (name, one.kind, span, text)
        for name, one, text in made
        # Names in a list may change places.
        if (span := one.damaged(text, in_order=name != "phrase-order"))
        and not (one.kind == "name" and span.lower() in slips)
        # Users write names in capitals or small letters too.
        and not (name == "letter-case" and one.kind in _NAMES)
    ]
    return len(made), broken


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw variants, and print how many are damaged, by way and by kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", nargs="?", type=Path, default=TEXTS)
    parser.add_argument(
        "--variants", type=int, default=5000, help="about how many variants to draw in each way"
    )
    parser.add_argument(
        "--show", type=int, default=3, help="number of damaged variants to print for each kind"
    )
    given = parser.parse_args(arguments)
    texts = read_texts(given.texts)
    print(f"{len(texts)} texts: {dict(Counter(one.kind for one in texts))}")
    failed = False
    for way in (*WAYS, "relations"):
        count, broken = check(texts, way, given.variants)
        failed = failed or bool(broken)
        print(f"{way}: {count} variants, {len(broken)} damaged")
        ordered = sorted(broken, key=lambda one: one[1])
        for kind, group in itertools.groupby(ordered, key=lambda one: one[1]):
            cases = list(group)
            print(f"  {kind}: {len(cases)}")
            for name, _, span, text in cases[: given.show]:
                print(f"    {name}: {span!r} in {text!r}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
