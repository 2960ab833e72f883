"""What comparisons of searches stand on: a tracker, held-out dialogues, their campaigns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from pytest_dstfuzz import __version__, load_dialogues
from pytest_dstfuzz.agents.training.right_dialogues import (
    RightDialogues,
    Say,
    held_out,
    right_dialogues,
)
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.config.rates import percent
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.papers.campaigns import CampaignRunner, Campaigns, Fingerprint
from pytest_dstfuzz.papers.contenders import Contender
from pytest_dstfuzz.papers.resampling import Resamples
from pytest_dstfuzz.search.protocol import Trained
from pytest_dstfuzz.search.registry import trained
from pytest_dstfuzz.seeding import stream
from pytest_dstfuzz.trackers.registry import tracker_for


def common_settings(**given: Any) -> Settings:
    """Return what all campaigns of an experiment are set to; ``None`` = an option was not given."""
    own = {name: value for name, value in given.items() if value is not None}
    return Settings.of(**{"turns": None, "shrink": False, "redraws": 8, **own})


@dataclass(frozen=True, slots=True)
class GroundConfig:
    """What all campaigns of a comparison have in common."""

    settings: Settings  #: See `common_settings`.
    splits: tuple[str, ...] = ("val", "test")
    seeds: tuple[int, ...] = (0, 1, 2)  #: Campaign seeds; see `Contender.runs`.
    #: Of the held-out dialogues, draw so many by the first seed; ``None`` = all.
    max_dialogues: int | None = None
    command: str = ""  #: The command line, for the table's header.
    #: Where no policy says which of the dialogues it never saw: take all of them, none of which
    #: is its own, and not only those that would be held out in a training.
    all_right: bool = False
    keep: tuple[str, ...] = ()  #: Ids of the dialogues that are taken; none = all.
    leave_out: tuple[str, ...] = ()  #: Ids of dialogues that are not taken.

    @property
    def tracker_and_weights(self) -> str:
        """The tracker, for the table's header."""
        tracker = self.settings.tracker
        weights = f", checkpoint `{tracker.checkpoint}`" if tracker.checkpoint else ""
        return f"{tracker.model}{weights}"

    @property
    def rates(self) -> str:
        """The limit of edit rates, for the table's header."""
        variant = self.settings.variant
        flat = " in short utterances too" if variant.flat_edit_rate else ""
        return f"edit rates up to {variant.max_edit_rate:g}{flat}"


class Contest(NamedTuple):
    """The rules under which searches are compared: the same for all of them."""

    validity: str
    budget: int  #: Variants that a search gets run at a turn.
    #: Turns are left alone once broken; otherwise the budget is spent on every turn.
    until_broken: bool = False

    @property
    def counting(self) -> str:
        """What the budget is spent on."""
        return "until broken" if self.until_broken else "whole"


@dataclass(frozen=True, slots=True)
class SearchComparison:
    """Where searches are compared."""

    config: GroundConfig
    right: RightDialogues
    data: DialogueSet  #: The held-out dialogues.
    campaigns: Campaigns
    resamples: Resamples
    #: The agents that are compared: name of the search -> its policy.
    policies: Mapping[str, Trained]

    def settings(self, contest: Contest, item: Contender, k: int) -> list[Settings]:
        """Return the settings of the campaigns of a contender, one for each of its runs."""
        return [
            self.config.settings.replace_options(
                validity=contest.validity,
                stop_at_first=contest.until_broken,
                variants=contest.budget,
                transformations=k,
                search=search,
                seed=seed,
            )
            for search, seed in item.runs(self.config.seeds)
        ]

    def header(self) -> list[str]:
        """Return the lines of Markdown that say what was measured on what."""
        config, variant = self.config, self.config.settings.variant
        data = config.settings.data.data
        drawn = (
            "" if not config.leave_out else f", without {len(config.leave_out):,} that are named"
        )
        drawn += ", only some that are named" if config.keep else ""
        if config.max_dialogues is not None:
            drawn += f", at most {config.max_dialogues} by seed"
        words = ", ".join(f"`{lock}`" for lock in variant.lock)
        locks = f", under `strict` no edit of {words}" if words else ""
        accuracies = ", ".join(
            f"{item.split} {percent(item.joint_goal_accuracy)}" for item in self.right.evaluations
        )
        return [
            f"- command: `{config.command}` (pytest-dstfuzz {__version__})",
            f"- tracker: {config.tracker_and_weights}; joint goal accuracy {accuracies}",
            (
                f"- data: `{data}`, values normalised as `{self.data.normalisation}`; of "
                f"{len(self.right.data.dialogues):,} dialogues right at every turn those that no "
                f"agent was trained on{drawn}: {len(self.data.dialogues):,} dialogues, "
                f"{self.data.turn_count():,} turns"
            ),
            (
                f"- attack {variant.attack}, {config.rates}{locks}, up to {variant.redraws} "
                "redraws of a variant that is vacuous, a duplicate or not valid; seeds "
                f"{', '.join(map(str, config.seeds))}"
            ),
            (
                "- in brackets 95 % intervals, bootstrapped over dialogues; of several runs "
                "(seeds of campaigns, and policies of several training seeds) the mean"
            ),
            *(_described(name, saved) for name, saved in self.policies.items()),
        ]


def prepare(
    config: GroundConfig,
    searches: Iterable[str],
    *,
    folder: Path | None,
    jobs: int,
    say: Say,
) -> SearchComparison:
    """Find the held-out dialogues of a tracker; for folder and jobs see `Campaigns`."""
    policies = {name: saved for name in searches if (saved := trained(name)) is not None}
    given = config.settings
    splits = [load_dialogues(given.data.data, split) for split in config.splits]
    tracker = tracker_for(given, splits[0])
    right = right_dialogues(tracker, splits, given.tracker.batch_size, say)
    unseen = _chosen(config, _unseen(config, splits, right.data, policies))
    data = drawn(unseen, config.max_dialogues, config.seeds[0], "held-out", "dialogues")
    say(f"{len(data.dialogues)} dialogues held out, {data.turn_count()} turns to perturb")
    campaigns = Campaigns(
        CampaignRunner(tracker, data),
        Fingerprint.of(data, right.evaluations, given.tracker.checkpoint),
        splits=config.splits,
        folder=folder,
        jobs=jobs,
        say=say,
    )
    ids = [dialogue.id for dialogue in data.dialogues]
    return SearchComparison(
        config, right, data, campaigns, Resamples(ids, config.seeds[0]), policies
    )


def _unseen(
    config: GroundConfig,
    splits: Sequence[DialogueSet],
    right: DialogueSet,
    policies: Mapping[str, Trained],
) -> DialogueSet:
    """Return the dialogues that no policy was trained on.

    A policy names those that it never saw; they need not be those that would be held out
    for this tracker, if it was trained against another one. One that names none of the
    dialogues of this data was trained on other data.
    """
    known = {dialogue.id for data in splits for dialogue in data.dialogues}
    named = [set(saved.held_out) & known for saved in policies.values()]
    unseen = [ids for ids in named if ids]
    if not unseen:
        return right if config.all_right else held_out(right)[1]
    ids = set.intersection(*unseen)
    kept = tuple(dialogue for dialogue in right.dialogues if dialogue.id in ids)
    if not kept:
        raise UserError(
            "of the dialogues that the tracker gets right at every turn, the policies of the "
            "agent leave none that they have not seen: compare them one by one"
        )
    return replace(right, dialogues=kept)


def _chosen(config: GroundConfig, data: DialogueSet) -> DialogueSet:
    """Return the dialogues that are to be kept, without those to leave out."""
    wanted, unwanted = frozenset(config.keep), frozenset(config.leave_out)
    kept = tuple(
        dialogue
        for dialogue in data.dialogues
        if (not wanted or dialogue.id in wanted) and dialogue.id not in unwanted
    )
    if not kept:
        raise UserError(
            f"of {len(data.dialogues)} dialogues that are right at every turn, the ids to keep and "
            "to leave out leave none"
        )
    return replace(data, dialogues=kept)


def _described(name: str, saved: Trained) -> str:
    return (
        f"- `{name}`: {saved.what} (sha256 {saved.fingerprint}), trained on the tracker "
        f"{saved.tracker}, {saved.data}, profile {saved.validity}, {saved.calls:,} calls, "
        f"seed {saved.seed}"
    )


def drawn(data: DialogueSet, count: int | None, seed: int, *purpose: str) -> DialogueSet:
    """Draw so many dialogues by seed, in data order; all where ``count`` is ``None``."""
    if count is None:
        return data
    order = stream(seed, *purpose).permutation(len(data.dialogues))
    chosen: Sequence[int] = sorted(order[:count].tolist())
    return replace(data, dialogues=tuple(data.dialogues[place] for place in chosen))
