"""Which turns of a data set a run tests: whole dialogues, in a seeded order."""

from __future__ import annotations

from dataclasses import replace

from pytest_dstfuzz.dialogue.dialogues import Dialogue, DialogueSet, domains_of_slots
from pytest_dstfuzz.errors import DataError, UserError, unknown_name
from pytest_dstfuzz.seeding import derive

#: Slots that a message shows.
_SHOWN = 6


def sample_turns(
    dialogues: DialogueSet,
    count: int | None,
    seed: int,
    domains: tuple[str, ...] | None = None,
) -> tuple[tuple[Dialogue, int], ...]:
    """Draw dialogues until ``count`` turns are reached; return each with its last turn.

    They are in the order of the data. The last one drawn is cut: its first turns are kept, so
    that exactly ``count`` turns result (all there are, where there are fewer). The same seed
    draws the same dialogues first, whatever the count, wherever the data lies, and whichever
    other dialogues are there: each has a rank that its id and the seed alone decide. With
    ``domains``, only dialogues count whose labels name a slot of one of them (the part of a
    slot's name before the first ``-``).
    """
    if count is not None and count < 1:
        raise UserError(f"the number of turns must be at least 1 or 'all', found {count}")
    kept = _of_domains(dialogues, domains)
    if count is None:
        return tuple((dialogue, len(dialogue.turns) - 1) for dialogue in kept)
    # By id and not by position or name of the data: a copy elsewhere is the same data.
    order = sorted(range(len(kept)), key=lambda at: (derive(seed, "sample", kept[at].id), at))
    last: dict[int, int] = {}
    remaining = count
    for position in order:
        if remaining == 0:
            break
        turns = min(remaining, len(kept[position].turns))
        last[position] = turns - 1
        remaining -= turns
    return tuple((kept[position], last[position]) for position in sorted(last))


def in_shard(dialogue_id: str, shard: tuple[int, int] | None) -> bool:
    """Whether a dialogue is of a part (its number, from 1, and of how many); ``None`` = of all.

    Its id alone decides: it stays in its part whatever the seed, and whichever other dialogues come
    or go.
    """
    if shard is None:
        return True
    number, parts = shard
    return derive(0, "shard", dialogue_id) % parts == number - 1


def sample_set(
    dialogues: DialogueSet,
    count: int | None,
    seed: int,
    domains: tuple[str, ...] | None = None,
) -> DialogueSet:
    """Return the data set of the turns that `sample_turns` draws, without the others."""
    drawn = sample_turns(dialogues, count, seed, domains)
    cut = (replace(dialogue, turns=dialogue.turns[: last + 1]) for dialogue, last in drawn)
    return replace(dialogues, dialogues=tuple(cut))


def domains_of(dialogue: Dialogue) -> frozenset[str]:
    """Return the domains of which a label of ``dialogue`` names a slot."""
    return domains_of_slots(slot for turn in dialogue.turns for slot in turn.state or ())


def _of_domains(dialogues: DialogueSet, domains: tuple[str, ...] | None) -> tuple[Dialogue, ...]:
    if not domains:
        return dialogues.dialogues
    touched = [domains_of(dialogue) for dialogue in dialogues.dialogues]
    slots = dialogues.ontology.slots if dialogues.ontology else ()
    known = domains_of_slots(slots).union(*touched)
    if not any(turn.state is not None for d in dialogues.dialogues for turn in d.turns):
        raise DataError(
            f"the dialogues of {dialogues.name!r} have no labels, so they cannot be chosen by "
            "domain: leave the domains out, or give labelled dialogues"
        )
    if not known:
        shown = ", ".join(slots[:_SHOWN]) + (", ..." if len(slots) > _SHOWN else "")
        raise DataError(
            f"the slots of {dialogues.name!r} belong to no domain (what stands before the first "
            f"'-' of a name), so dialogues cannot be chosen by domain: {shown}. Leave the domains "
            "out; --dst-slots chooses slots"
        )
    for domain in domains:
        if domain not in known:
            raise UserError(
                f"{unknown_name('domain', domain, known)} Labels and ontology say which there are."
            )
    wanted = frozenset(domains)
    kept = tuple(d for d, own in zip(dialogues.dialogues, touched, strict=True) if own & wanted)
    if not kept:
        raise DataError(
            f"no dialogue of {dialogues.name!r} ({dialogues.split}) touches "
            f"{', '.join(sorted(wanted))}"
        )
    return kept
