"""Builds the noise models that ship, and says how well the one of typing foresees slips.

``python -m tools.noise.build --multiwoz trade-tsv.zip --sgd train.zip --cmudict cmudict.dict
--output pytest_dstfuzz/resources/noise``; the card in that folder names sources and licences. The
same sources give the same bytes.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.files import write_text
from pytest_dstfuzz.noise import casual as casual_writing
from pytest_dstfuzz.noise.casual import ANY_WORD
from pytest_dstfuzz.noise.evidence import (
    Evidence,
    Text,
    TextCounts,
    find,
    part_of,
    propose_split,
    propose_two,
)
from pytest_dstfuzz.noise.fit import KAPPAS, fit_blanks, fit_typing, model_file
from pytest_dstfuzz.noise.model import NoiseModel
from pytest_dstfuzz.noise.tables import ModelFile, NoiseKind, Tables, plain
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon, load_lexicon
from tools.noise import sources
from tools.noise.likelihood import HAPPENED, Score, mean, scores

#: Slips per word where a run names no other rate.
SLIP_RATE: Final = 0.02
FOLDS: Final = 5
#: Supposed, since no text of the splits has any: turns that end with an emoji.
EMOJI_A_TURN: Final = 0.001
#: Turns that are enough to see how often a table applies.
_ENOUGH: Final = 20_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--multiwoz", type=Path, required=True, help="MultiWOZ 2.1, TRADE layout")
    parser.add_argument("--sgd", type=Path, required=True, help="train.zip of SGD")
    parser.add_argument("--cmudict", type=Path, required=True, help="cmudict.dict of CMUdict")
    parser.add_argument("--output", type=Path, required=True, help="folder to write to")
    options = parser.parse_args(arguments)
    try:
        build(options.multiwoz, options.sgd, options.cmudict, options.output)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def say(text: str) -> None:
    """Print a line of progress at once."""
    print(text, flush=True)


def build(multiwoz: Path, sgd: Path, cmudict: Path, output: Path) -> None:
    """Write the three models into a folder."""
    lexicon = load_lexicon()
    spoken = sources.read_sgd(sgd)
    written = sources.read_multiwoz(multiwoz)
    texts = [*written, *spoken.texts]
    evidence = gathered(written, spoken, lexicon)
    counts = evidence.counts
    for line in held_out(evidence, texts):
        say(line)
    write(output, typing(evidence))
    user = [text for _, text in spoken.user]
    write(output, casual(spoken.user, user, evidence))
    write(output, speech(cmudict, counts.words, user, lexicon))


def gathered(written: Sequence[Text], spoken: sources.Utterances, lexicon: Lexicon) -> Evidence:
    """Return what a model of typing is fitted to: the texts' words, and their slips.

    Slips of one letter were read; those of two letters and blanks put in follow from a rule. A name
    of SGD is no slip there.
    """
    counts = TextCounts.of(text for _, text in [*written, *spoken.texts])
    say(f"{len(written) + len(spoken.texts):,} texts, {sum(counts.words.values()):,} words")
    names = spoken.names
    read = sources.read_slips()
    rest = {
        **propose_two(counts, lexicon.is_word, names),
        **propose_split(counts, lexicon.is_word, names),
    }
    candidates = {**{typed: words for typed, words in rest.items() if typed not in read}, **read}
    clear = {typed: words for typed, words in candidates.items() if typed not in names}
    slips = [*find(written, candidates, counts), *find(spoken.texts, clear, counts)]
    say(f"{len(slips):,} slips of {len({s[:2] for s in slips}):,} kinds")
    return Evidence(counts, slips, lexicon.misspellings, keyboard(lexicon), lexicon.is_word)


TYPING: Final = (
    "MultiWOZ 2.1, training split: users and wizards",
    "SGD, training split: users and system",
    "misspellings and keyboard: lists of pytest-dstfuzz",
)
CASUAL: Final = (
    "SGD, training split: users",
    "spellings: lists of pytest-dstfuzz",
    "missing articles, emoji: supposed",
)
SPEECH: Final = (
    "Bortfeld et al. 2001: fillers, repeats, restarts",
    "CMUdict: homophones",
    "shares of homophones and dropped words: supposed",
)


def keyboard(lexicon: Lexicon) -> dict[str, str]:
    """Return the keys around each letter and each digit; letters beside letters alone."""
    return {
        key: "".join(other for other in others if other.isalpha() == key.isalpha())
        for key, others in lexicon.keyboard.items()
        if key.isalnum()
    }


def typing(evidence: Evidence) -> ModelFile:
    """Return the model of typing.

    Parts of the slips that a fit does not see choose the strength of its prior, and say which kinds
    need a higher share.
    """
    # Other parts than those of `held_out`, which has one of every five dialogues.
    parts = [evidence.part(number, FOLDS - 1) for number in range(FOLDS - 1)]

    def tried(kappa: float, part: int) -> list[Score]:
        fitted_to, held = parts[part]
        model = NoiseModel(model_file("", 0.0, (), *fit_typing(evidence, fitted_to, kappa)))
        return scores(model, held)

    first = {kappa: tried(kappa, 0) for kappa in KAPPAS}
    kappa = best_prior(first)
    trials = first[kappa] + [s for part in range(1, len(parts)) for s in tried(kappa, part)]
    file = model_file("typing", SLIP_RATE, TYPING, *fit_typing(evidence, kappa=kappa))
    raised = with_raised_shares(file.kinds, trials)
    rises = ", ".join(
        f"{old.name} {old.share:.3f} to {new.share:.3f}"
        for old, new in zip(file.kinds, raised, strict=True)
        if new.share > old.share
    )
    say(f"typing: a prior of {kappa:g} slips; raised shares: {rises or 'none'}")
    return replace(file, kinds=raised)


def best_prior(trials: Mapping[float, Sequence[Score]]) -> float:
    """Return the strength of the prior whose model foresees slips best.

    Slips without a probability do not count, since no model makes some slips of two letters.
    """
    bits = {kappa: [s.model for s in of if s.model < math.inf] for kappa, of in trials.items()}
    return min(bits, key=lambda kappa: mean(bits[kappa]))


def with_raised_shares(
    kinds: Sequence[NoiseKind], trials: Sequence[Score]
) -> tuple[NoiseKind, ...]:
    """Return the kinds, with higher shares for those that uniform edits foresee better.

    Afterwards the model and uniform edits need as many bits for the slips of such a kind. Its
    letters are hard to foresee, and uniform edits spend most of their probability on such slips.

    Args:
        kinds: all kinds of a model.
        trials: slips to which the model was not fitted.
    """
    least = {kind.name: kind.share * 2.0 ** excess(kind.name, trials) for kind in kinds}
    shares = {kind.name: kind.share for kind in kinds}
    raised: set[str] = set()
    # The other shares shrink, so that another kind may need a higher share: repeat.
    while more := {name for name, share in shares.items() if share < least[name]} - raised:
        raised |= more
        rest = 1.0 - math.fsum(least[name] for name in raised)
        before = math.fsum(kind.share for kind in kinds if kind.name not in raised)
        shares = {
            kind.name: least[kind.name] if kind.name in raised else kind.share * rest / before
            for kind in kinds
        }
    return tuple(replace(kind, share=shares[kind.name]) for kind in kinds)


def excess(kind: str, trials: Sequence[Score]) -> float:
    """Return by how many bits a model foresees slips of a kind worse than uniform edits do.

    The result is ``-inf`` if neither makes such slips, or only the model does.
    """
    of = [s for s in trials if s.what == kind and max(s.model, s.uniform) < math.inf]
    return mean(s.model - s.uniform for s in of) if of else -math.inf


def model_without(evidence: Evidence, texts: Sequence[Text], number: int) -> NoiseModel:
    """Return the model of typing that is fitted to all parts of the dialogues but one."""
    kept, held = evidence.part(number, FOLDS)
    others = (text for source, text in texts if part_of(source, FOLDS) != number)
    say(f"  fold {number}: {len(held)} slips")
    return NoiseModel(typing(replace(evidence, counts=TextCounts.of(others), slips=kept)))


def held_out(evidence: Evidence, texts: Sequence[Text]) -> list[str]:
    """Return the lines of a table: bits per slip of dialogues that a model was not fitted to."""
    found: list[Score] = []
    for number in range(FOLDS):
        found += scores(model_without(evidence, texts, number), evidence.part(number, FOLDS)[1])
    lines = [
        "| what happened | slips | uniform edits | the model | saved | which word |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    alike = [score for score in found if score.uniform < math.inf]
    rows = [(words, [s for s in found if s.what == what]) for what, words in HAPPENED.items()]
    for words, of in [*rows, ("all that uniform edits make", alike)]:
        known = [score for score in of if score.model < math.inf]
        if known:
            bits, uniform = mean(s.model for s in known), mean(s.uniform for s in known)
            cells = (uniform, bits, uniform - bits, mean(s.where for s in known))
            figures = " | ".join(f"{cell:.2f}" if cell < math.inf else "-" for cell in cells)
            lines.append(f"| {words} | {len(known)} | {figures} |")
    lines.append(f"slips that the model does not make: {sum(math.isinf(s.model) for s in found)}")
    return lines


def casual(spoken: Sequence[Text], user: Sequence[str], evidence: Evidence) -> ModelFile:
    """Return the model of casual writing."""
    own = sources.read_own("casual.txt")
    counts = TextCounts.of(user)
    lists = {k: sources.forms_of(own[k]) for k in ("apostrophe", "texting", "contraction")}
    lists["doubled"] = listed(own["doubled"])
    seen, words = casual_writing.find_habits(user, lists, known=False)
    # Tokenised text has a blank in the word: `do n't`.
    words["contraction"] |= {
        " ".join(clitic_apart(word)): forms
        for word, forms in words["apostrophe"].items()
        if "'" in word[1:]
    }
    words["dropped"] = listed(own["dropped"])
    # Supposed: as often as a word stands there twice.
    seen["dropped"] = seen["doubled"]
    words["emoji"] = {ANY_WORD: dict.fromkeys(own["emoji"][0].split(), 1.0 / 5)}
    seen["emoji"] = EMOJI_A_TURN * len(user)
    sources_of_user = {text.source for text in spoken}
    joined = [s for s in evidence.slips if " " in s.word and s.source in sources_of_user]
    blanks = fit_blanks(counts, joined, 3.0, sum(counts.words.values()), None)
    seen["blank"] = len(joined)
    tables = Tables(factors={"blank": blanks.factors}, words=words)
    rate = sum(seen.values()) / sum(counts.words.values())
    say(f"casual: {rate:.4f} slips per word; {shown(seen)}")
    kinds = casual_writing.weigh(seen, tables, user[:: max(1, len(user) // _ENOUGH)])
    return model_file("casual", SLIP_RATE, CASUAL, kinds, tables)


def speech(cmudict: Path, counts: Counter[str], user: Sequence[str], lexicon: Lexicon) -> ModelFile:
    """Return the model of speech."""
    own = sources.read_own("speech.txt")
    rates = {k: float(v) for k, v in (line.split(":") for line in own["per_100_words"])}
    words: dict[str, dict[str, dict[str, float]]] = {
        kind: {ANY_WORD: {k: float(v) / 100 for k, v in (line.split(":") for line in own[kind])}}
        for kind in ("filler", "restart")
    }
    words |= {kind: listed(own[kind]) for kind in ("doubled", "dropped")}
    left_out = " ".join(own["not_homophones"]).split()
    words["homophone"] = sources.homophones(cmudict, counts, lexicon, left_out)
    say(f"speech: {len(words['homophone'])} words have homophones")
    tables = Tables(words=words)
    kinds = casual_writing.weigh(rates, tables, user[:: max(1, len(user) // _ENOUGH)])
    return model_file("speech", SLIP_RATE, SPEECH, kinds, tables)


def clitic_apart(word: str) -> tuple[str, str]:
    """Return the two parts of a contraction, as tokenised text has them: ``do`` and ``n't``."""
    at = len(word) - 3 if word.endswith("n't") else word.index("'")
    return word[:at], word[at:]


def listed(lines: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return the table of a list of words that are all alike."""
    return {word: {ANY_WORD: 1.0} for word in sorted(set(" ".join(lines).split()))}


def shown(seen: Mapping[str, float]) -> str:
    """Return kinds and their numbers, the most frequent first."""
    order = sorted(seen.items(), key=lambda item: -item[1])
    return ", ".join(f"{kind} {count:,.0f}" for kind, count in order)


def write(folder: Path, file: ModelFile) -> None:
    """Write a model, and print the shares of its kinds."""
    path = folder / f"{file.name}.json"
    write_text(path, json.dumps(plain(file), ensure_ascii=False, separators=(",", ":")) + "\n")
    kinds: Sequence[NoiseKind] = sorted(file.kinds, key=lambda kind: -kind.share)
    shares = ", ".join(f"{kind.name} {kind.share:.3f}" for kind in kinds)
    say(f"{path}: {path.stat().st_size:,} bytes; {shares}")


if __name__ == "__main__":
    sys.exit(main())
