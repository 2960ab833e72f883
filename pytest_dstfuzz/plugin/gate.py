"""The gate of a session, its baseline, and its JUnit test case."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from pytest_dstfuzz import __version__
from pytest_dstfuzz.comparisons.comparison import Comparison
from pytest_dstfuzz.comparisons.judge import JudgeFacts
from pytest_dstfuzz.config import Settings, shard_text
from pytest_dstfuzz.config.parsers import percent, points
from pytest_dstfuzz.dialogue.calls import AnswerPath, OutcomeKind
from pytest_dstfuzz.dialogue.dialogues import DialogueSet, domains_of_slots
from pytest_dstfuzz.dialogue.ontology import arguments_of, is_argument
from pytest_dstfuzz.errors import NoAnswerError, OutOfReachError, UserError, nearest
from pytest_dstfuzz.files import check_writable, lock_file, write_text
from pytest_dstfuzz.gate.baseline import (
    Baseline,
    Session,
    Suite,
    Update,
    baselines_text,
    campaign_identity,
    contents_of,
    make_baseline,
    read_baselines,
    update_all,
)
from pytest_dstfuzz.gate.judge import (
    UNRUN,
    baseline_of,
    judge,
    judge_answers,
    no_result_text,
    worst_status,
)
from pytest_dstfuzz.gate.verdict import (
    FAILED,
    INFRASTRUCTURE,
    Gates,
    Judgement,
    LimitFinding,
    check_names,
    check_relations,
    unknown_part,
)
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.kinds.kind import AnswerKind
from pytest_dstfuzz.own_values import hint_of
from pytest_dstfuzz.perturb.operators import NoiseInUse
from pytest_dstfuzz.plugin.options import gates_of
from pytest_dstfuzz.plugin.results import ModelResults
from pytest_dstfuzz.plugin.selection import NODE, selection_of
from pytest_dstfuzz.printable import format_count, format_list
from pytest_dstfuzz.relations.registry import ALL, FAMILIES, RELATIONS, relations_named
from pytest_dstfuzz.report.figures import (
    describe_expected,
    describe_unlimited,
    list_changed_answers,
    list_moved_dialogues,
    relation_lines,
    undecided_text,
)
from pytest_dstfuzz.report.json_report import RunInfo
from pytest_dstfuzz.report.page import Style, StyledLine
from pytest_dstfuzz.report.screen import VERDICTS, GateRuling
from pytest_dstfuzz.report.weaknesses import moved_weaknesses
from pytest_dstfuzz.report.wording import visible
from pytest_dstfuzz.search.registry import search_by_name
from pytest_dstfuzz.trackers.tracker import NAMELESS

_NAME: Final = "gate"


def record_failed_gate(config: pytest.Config, reasons: Sequence[str]) -> None:
    """Add a failed test case to the file of --junitxml, if such a file is written.

    With a gate, violations fail no test, so the file would show no failure. pytest does not count
    this test case. The exit status shows the failure, too.

    Args:
        config: the configuration of the session.
        reasons: why the gate failed, one sentence each; empty if it did not fail.
    """
    if not reasons:
        return
    place, node = (NODE, None, _NAME), f"{NODE}::{_NAME}"
    failed = pytest.TestReport(node, place, {}, "failed", "\n".join(reasons), "call")
    over = pytest.TestReport(node, place, {}, "passed", None, "teardown")
    for plugin in config.pluginmanager.get_plugins():
        # The plugin that writes the file has no public name, but it collects properties of the
        # suite.
        if callable(getattr(plugin, "add_global_property", None)):
            for report in (failed, over):
                plugin.pytest_runtest_logreport(report)


def write_baselines(
    judged: Mapping[str, tuple[Session, Judgement]],
    settings: Settings,
    suite: Suite,
) -> StyledLine:
    """Write the baselines of all trackers. Return a line that reports success or the error.

    Args:
        judged: name of a tracker -> its results and the verdict.
        settings: the options.
        suite: the tests of the suite.
    """
    path, variants = Path(settings.gate.baseline or ""), 0
    if settings.variant.variant is not None:
        return _not_written("--dst-variant tests only one variant of each turn")
    baselines: dict[str, Baseline] = {}
    contents: dict[str, tuple[str, ...]] = {}
    for name, (session, judgement) in judged.items():
        answers = (each.reason for each in judgement.findings if each.gate == "clean-answers")
        unrun = f"{no_result_text(session.missing)}. {UNRUN}" if session.missing else ""
        hint = hint_of(*session.campaign.values())
        unknown = hint and f"no later run could be compared with it{hint}"
        troubles = "; ".join([*judgement.troubles, *answers])
        if why := session.ended or unrun or troubles or unknown:
            return _not_written(f"{name}: {why}" if name else why)
        baselines[session.tracker] = make_baseline(
            session.groups,
            session.campaign,
            session.tracker or str(settings.tracker.model or NAMELESS),
            session.contents,
            # The baseline hides the same texts as the reports.
            hidden=settings.output.redact,
            varies=session.varies,
            variants=settings.variant.variants,
        )
        contents |= {name: tuple(keys) for name, keys in session.contents.items()}
        variants += sum(len(turn.variants) for turn in session.results)
    try:
        # Another job may update another part of the file.
        with lock_file(path):
            updated = _updated(path, baselines, contents, suite)
            if updated.refused:
                return _not_written(updated.refused)
            write_text(path, baselines_text(updated.baselines))
    except UserError as error:
        return _not_written(str(error))
    text = f"the baseline {path} now has the outcomes of {format_count(variants, 'variant')}"
    if updated.kept:
        verb = "is" if updated.kept == 1 else "are"
        turns = format_count(updated.kept, "turn")
        text = f"{text}; {turns} that this run did not test {verb} unchanged"
    if updated.dropped:
        turns = format_count(updated.dropped, "turn")
        text = f"{text}, without {turns} of tests that the suite no longer has"
    return StyledLine(text, "good")


def _not_written(why: str) -> StyledLine:
    return StyledLine(f"failed: the baseline was not written: {why}", "bad")


def _updated(
    path: Path,
    baselines: Mapping[str, Baseline],
    contents: Mapping[str, tuple[str, ...]],
    suite: Suite,
) -> Update:
    """Return the new baselines. Turns that this run did not test are kept unchanged."""
    if not path.exists():
        return Update(baselines)
    try:
        old = read_baselines(path)
    except UserError:
        if suite.is_part:  # An unreadable file may have all the other turns.
            raise
        return Update(baselines)
    return update_all(old, baselines, contents, suite)


#: Maximum number of names for dialogues of each kind, and for turns with a changed answer.
_MOST_NAMES: Final = 5
_UNDECIDED: Final = (
    "an inconclusive gate does not fail the run (with dst_inconclusive=fail: exit status 7)"
)
#: Maximum number of weaknesses, new or fixed, that are described.
_MOST_WEAKNESSES: Final = 10


#: How similar the name of a limit must be to the name of a slot that it may be meant for.
_CLOSE: Final = 0.75
#: Advice if a limit has the name of a slot that no answer of the run has, by the kind of answer.
_UNLISTED: Final[Mapping[OutcomeKind, str]] = {
    "state": "No answer of the run has this name. If it is right, list the slot in an ontology",
    "tool-calls": (
        "No call of the run has this name. If it is right, list the argument in the schema of its "
        "tool"
    ),
    "reply": "Replies have no slots and no domains: remove the limit",
}


def _names_of(data: DialogueSet, kinds: Sequence[AnswerKind]) -> dict[str, set[str]]:
    """Return the slots and the domains that the data lists: in ontology, schemas and labels."""
    slots = set() if data.ontology is None else set(data.ontology.slots)
    domains = set(domains_of_slots(slots))
    if any(kind.has_tools for kind in kinds):
        slots |= {*arguments_of(data.tools)}
        domains |= {tool.name for tool in data.tools}
    paths = {
        path
        for kind in kinds
        for dialogue in data.dialogues
        for turn in dialogue.turns
        for path in kind.label(dialogue, turn.index) or ()
    }
    for domain, slot in {AnswerPath.of(path).part for path in paths}:
        slots.add(slot)
        domains |= {domain} - {""}
    return {"slot": slots, "domain": domains}


def _undecided_texts(
    info: RunInfo, before: JudgeFacts | None, after: JudgeFacts | None
) -> list[str]:
    """Return why a language model that compares replies decided too few pairs, if it did.

    The answers of a baseline are compared between ``before`` and ``after``. They count apart from
    the pairs of the run.
    """
    found = {"" if info.judge is None else undecided_text(info.judge[1])}
    if after is not None:
        found.add(undecided_text(after if before is None else after - before))
    return sorted(found)


class GateDecision(NamedTuple):
    """The decision of the gate at the end of a session."""

    #: By the name of the tracker.
    judgements: Mapping[str, Judgement]
    #: The exit status, 0 if nothing failed.
    status: int
    #: By the name of the tracker.
    rulings: Mapping[str, GateRuling]
    #: Whether the baseline was written, if it was to be, and the trackers that only it has.
    baseline: tuple[StyledLine, ...] = ()

    @property
    def lines(self) -> list[StyledLine]:
        """All lines. With several trackers, each group of lines follows the name of its tracker."""
        said = (
            line._replace(text=visible(f"{model}: {line.text}" if model else line.text))
            for model, ruling in self.rulings.items()
            for line in ruling.lines
        )
        return [*said, *self.baseline]


class SessionGate:
    """Limits and baseline of a session."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self._settings = settings
        self._config = config
        self._quiet = config.get_verbosity() < 0
        #: Name of a tracker -> its results and the verdict.
        self._judged: dict[str, tuple[Session, Judgement]] = {}
        #: The trackers of the baseline with which these are compared.
        self._compared: set[str] = set()
        #: The data of these results, and the kinds of answers in them.
        self._data: DialogueSet | None = None
        self._kinds: set[OutcomeKind] = set()
        self._suite = Suite()
        self.gates: Gates = gates_of(config, settings)

    @property
    def given(self) -> bool:
        """Whether the session has a limit, or a baseline to compare with or to write."""
        return self.judges or self._settings.gate.baseline is not None

    @property
    def judges(self) -> bool:
        """Whether the gate gives a verdict: it needs a limit, or a baseline to compare with."""
        how = self._settings.gate
        compared = how.baseline is not None and not how.update_baseline
        return compared or self.gates.without_baseline.given

    @cached_property
    def _baselines(self) -> Mapping[str, Baseline] | None:
        """The baseline of each tracker. ``None`` without a baseline, or if the run replaces it."""
        how = self._settings.gate
        if how.baseline is None or how.update_baseline:
            return None
        return read_baselines(Path(how.baseline))

    def prepare(self, data: DialogueSet) -> None:
        """Check limits and baseline before the run, as far as possible."""
        self._refuse_part()
        # If the slots only come from labels, the run may find others. Calls have the arguments of
        # the tools.
        slots = () if data.ontology is None else data.ontology.slots
        kind = KINDS[self._settings.reply.outcome]
        if kind.has_tools and data.tools:
            names = (part.name for part in self.gates.parts if part.kind == "slot")
            arguments = [name for name in names if is_argument(name, data.tools)]
            tools = [tool.name for tool in data.tools]
            check_names(self.gates, (*slots, *arguments_of(data.tools), *arguments), tools)
        elif data.ontology is not None and data.ontology.complete:
            check_names(self.gates, slots)
        alone = [name for name in RELATIONS.names if name not in (ALL, *FAMILIES)]
        check_relations(self.gates, alone, FAMILIES)
        labels = any(
            kind.label(each, turn.index) is not None
            for each in data.dialogues
            for turn in each.turns
        )
        if "min_accuracy" in self.gates.whole and not labels:
            what = kind.words.labels
            raise UserError(
                f"the limit min-accuracy needs {what}, and the data {data.name!r} has none: remove "
                "the limit"
            )
        if self.gates.of_expected:
            self._refuse_without_density()
        if self._settings.gate.baseline is None:
            return
        if self._baselines is None:  # It will be written.
            check_writable(Path(self._settings.gate.baseline))

    def _refuse_part(self) -> None:
        """Raise an error for limits on a shard, because limits apply to all shards together."""
        shard = self._settings.data.shard
        if shard is None or shard[1] == 1 or not self.given:
            return
        part = shard_text(shard)
        raise UserError(
            f"--dst-shard={part} with limits or a baseline: they apply to all parts together. Run "
            f"each part with dstfuzz campaign --shard {part} --results part-{shard[0]}, merge the "
            "folders with dstfuzz merge, and judge the result with pytest --dst-results=DIR"
        )

    def _refuse_without_density(self) -> None:
        """Raise an error for a limit on estimated failures if the session has no estimate."""
        if self._settings.output.replay is not None:  # A replay does not search.
            return
        how, lacks = self._settings.variant, ""
        relations = relations_named(how.relation, outcome=self._settings.reply.outcome)
        if all(relation.edits == "own" for relation in relations):
            names = ", ".join(relation.name for relation in relations)
            lacks = (
                f"{names} makes its own edits; use metamorphic, whose edits come from the search"
            )
        elif not search_by_name(how.search, seed=how.seed, k=how.transformations).by_density:
            lacks = f"the search {how.search} does not use the probabilities of variants"
        elif how.stop_at_first:
            lacks = "stop-at-first leaves out variants of a turn"
        if lacks:
            raise UserError(
                "limits on estimated failures (max-estimated-failures, max-estimated-rise) need "
                "--dst-validity=natural and a search that samples slips, such as noise or "
                f"noise+random: {lacks}"
            )

    def status_of(self, error: UserError) -> int:
        """Return the exit status of a session that cannot run."""
        gone = isinstance(error, NoAnswerError) and self._settings.gate.baseline is not None
        gone = gone or isinstance(error, OutOfReachError)
        return INFRASTRUCTURE if gone else pytest.ExitCode.USAGE_ERROR

    def end(self, error: UserError) -> BaseException:
        """Return an exception that ends the session and shows one message."""
        status = self.status_of(error)
        if status == pytest.ExitCode.USAGE_ERROR:
            return pytest.UsageError(str(error))
        words = VERDICTS["infrastructure"][1]
        return pytest.exit.Exception(f"{error} (verdict: {words})", returncode=status)

    def know(self, models: Sequence[ModelResults], collected: Collection[tuple[str, str]]) -> None:
        """Record the trackers of the session, and the files and trackers of all its tests."""
        tested = frozenset(one.tracker for one in models)
        # With several trackers, the one of the options has a name, too.
        nameless = "" if len(models) == 1 else self._settings.tracker.model or NAMELESS
        names = frozenset(name or nameless for _, name in collected)
        self._suite = Suite(
            tested | names,
            frozenset(file for file, _ in collected),
            all_files=selection_of(self._config).everywhere and not self._skipped_files,
            all_tests=not self._narrowed,
            root=self._config.rootpath,
        )

    def judge(
        self,
        found: ModelResults,
        data: DialogueSet,
        info: RunInfo,
        comparison: Comparison,
        *,
        asked: Callable[[], JudgeFacts | None],
        by_budget: bool = False,
    ) -> None:
        """Judge the results of a tracker.

        ``asked`` returns the calls to the judge so far, and ``by_budget`` says whether only a
        budget ended the session.
        """
        settings, how = self._settings, self._settings.variant
        record, named = found.collector, found.settings
        identity = campaign_identity(
            named,
            data,
            lexicon=info.lexicon,
            policy=info.policy,
            noise=NoiseInUse.of(how.noise, how.slip_rate).identity if how.noisy else "",
            compared=record.compared_by or ([] if comparison.exact else [comparison.identity]),
            code=record.code,
        )
        # The turns of a dialogue follow each other.
        dialogue = lru_cache(maxsize=1)(data.dialogue)
        session = Session(
            groups=record.groups(data),
            totals=found.totals,
            campaign=identity,
            contents=contents_of(data) if settings.gate.baseline is not None else {},
            seed=settings.variant.seed,
            tracker=found.tracker,
            missing=record.missing,
            ended=info.ended,
            by_budget=by_budget and not record.missing,
            hidden=settings.output.redact,
            comparison=comparison,
            fallback=settings.reply.fallback,
            context_of=lambda name, turn: dialogue(name).context(turn),
            compared=frozenset(record.comparisons),
            blind=record.blind_comparisons(data),
            varies=info.disagreement is not None and info.disagreement.differed > 0,
        )
        baseline = self._baseline_of(session)
        # With ``all``, no relation was requested by name.
        units = {} if how.relation == ALL else record.relations
        of_units = {name: facts.unit for name, facts in units.items()}
        recorded = settings.gate.fail_on == "gate"
        before = asked()
        judgement = judge(session, self.gates, baseline, of_units, recorded=recorded)
        texts = (*_undecided_texts(info, before, asked()), record.carried_text())
        troubles = (*judgement.troubles, *filter(None, texts))
        self._judged[found.name] = session, replace(judgement, troubles=troubles)
        # A fixture of the suite may have selected another kind of answer.
        self._kinds.add(named.reply.outcome)
        self._data = data

    def _baseline_of(self, session: Session) -> Baseline | None:
        """Return the baseline of a tracker, and remember that it is compared."""
        if self._baselines is None:
            return None
        found = baseline_of(session, self._baselines, self._suite)
        if found.groups:
            self._compared.add(found.model)
        return found

    def _unknown_part(self) -> str:
        """Return a message if a limit names a slot or domain that does not occur, else ``""``.

        Without a complete ontology, this is known only after the run. Without any ontology, or if
        a schema does not list the arguments of its tool, the name may be right although no answer
        has it. Then it is unknown only if the limit may be meant for violations that no limit of
        its kind judges.
        """
        data, kinds = self._data, [KINDS[name] for name in sorted(self._kinds)]
        if data is None or not any(part.kind in ("slot", "domain") for part in self.gates.parts):
            return ""
        totals = [one for session, _ in self._judged.values() for one in session.totals.in_order]
        known = _names_of(data, kinds)
        broken: dict[str, set[str]] = {"slot": set(), "domain": set()}
        for one in totals:
            rows = {"slot": one.yields.slots, "domain": one.yields.domains}
            for name, row in rows.items():
                known[name] |= row.keys()
                if not one.follows:
                    broken[name] |= {each for each, counts in row.items() if counts.violations}
        listed = data.ontology is not None and all(kind.has_slots for kind in kinds)
        partial = self._narrowed or any(session.ended for session, _ in self._judged.values())
        for part in self.gates.parts:
            if part.kind not in known or part.name in known[part.kind]:
                continue
            error = unknown_part(part, known[part.kind])
            if listed:
                return str(error)
            limited = {other.name for other in self.gates.parts if other.kind == part.kind}
            meant = broken[part.kind] - limited
            # A part of a run often has no answer with a slot of a right limit, and a limit for the
            # session judges all violations.
            likely = partial or bool(self.gates.whole)
            if nearest(part.name, meant, _CLOSE) if likely else meant:
                return f"{error} {_UNLISTED[kinds[0].name]}"
        return ""

    def decide(self) -> GateDecision:
        """Return the verdict on the session, which fails if one of its trackers fails.

        Also writes the baseline if requested.
        """
        if why := self._unknown_part():
            self._judged = {
                model: (session, replace(judgement, troubles=(*judgement.troubles, why)))
                for model, (session, judgement) in self._judged.items()
            }
        judgements = {model: judgement for model, (_, judgement) in self._judged.items()}
        how, status = self._settings.gate, 0
        for each in judgements.values():
            own = each.exit_status(compared=how.baseline is not None, policy=how.inconclusive)
            status = worst_status(status, own)
        rulings = {model: self._ruling(each) for model, each in judgements.items()}
        if not how.update_baseline:
            return GateDecision(judgements, status, rulings, self._untested())
        written = write_baselines(self._judged, self._settings, self._suite)
        status = FAILED if written.style == "bad" and not status else status
        return GateDecision(judgements, status, rulings, (written,))

    def _untested(self) -> tuple[StyledLine, ...]:
        """Return a note if the baseline has trackers that the session did not test."""
        known = {one.model for one in (self._baselines or {}).values()}
        others = sorted(known - self._compared)
        if not others or not self._compared:
            return ()
        names = format_list(others, _MOST_NAMES)
        text = f"note: this run did not test all trackers of the baseline: {names} missing"
        return (StyledLine(visible(text), "warning"),)

    def _ruling(self, judgement: Judgement) -> GateRuling:
        """Return the lines for a verdict."""
        reasons = [*self._reasons(judgement)]
        if judgement.verdict == "inconclusive" and self._settings.gate.inconclusive != "fail":
            reasons.append(StyledLine(_UNDECIDED, "warning"))
        changes = () if judgement.comparison is None or self._quiet else _compared(judgement)
        return GateRuling(
            judgement.verdict if self.judges else "",
            # Limits that hold come last.
            tuple(sorted(reasons, key=lambda line: line.style == "good")),
            tuple(map(StyledLine, changes)),
        )

    def judge_answers(self, found: ModelResults) -> tuple[StyledLine, ...]:
        """Return a line if a tracker answers all clean turns alike, even without a gate."""
        name = f"{found.name}: " if found.name else ""
        return tuple(
            StyledLine(f"failed: {visible(f'{name}{finding.reason}')}", "bad")
            for finding in judge_answers(found.totals)
        )

    @property
    def _skipped_files(self) -> bool:
        """Whether a file was skipped when pytest collected it."""
        return any(isinstance(one, pytest.CollectReport) for one in self._reported("skipped"))

    @property
    def _narrowed(self) -> bool:
        """Whether only some of the tests were selected."""
        return selection_of(self._config).selects or bool(self._reported("deselected"))

    def _reported(self, kind: str) -> Sequence[object]:
        """Return the reports and tests of a kind that pytest counts."""
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        return () if reporter is None else reporter.stats.get(kind, ())

    def _reasons(self, judgement: Judgement) -> Iterator[StyledLine]:
        new = [each for each in judgement.findings if each.gate == "max-new-violations"]
        yield from filter(None, map(self._finding, new))
        clean = [finding for finding in judgement.findings if finding.gate == "max-clean-drift"]
        for finding in clean:
            yield from self._drift(finding, judgement.comparison or {})
        for trouble in (*judgement.troubles, *filter(None, [judgement.cut_short])):
            yield StyledLine(f"failed: {trouble}", "bad")
        for reason in judgement.not_compared:
            what = _not_compared(judgement.comparison or {})
            style = "bad" if judgement.verdict == "not-compared" else self._unsure
            yield StyledLine(f"{what} compared with the baseline: {reason}", style)
        if judgement.not_compared:
            yield StyledLine(_remedy(judgement), "dim")
        if names := judgement.not_judged:
            yield StyledLine(f"not judged: {describe_unlimited(names)}", "warning")
        notes = (*judgement.covered, *judgement.raised, *judgement.partly_applied)
        yield from (StyledLine(f"note: {text}", "warning") for text in notes)
        for finding in judgement.findings:
            if finding not in (*new, *clean) and (line := self._finding(finding)):
                yield line

    def _drift(self, finding: LimitFinding, comparison: Mapping[str, Any]) -> Iterator[StyledLine]:
        """Yield the lines for the judgement of the clean answers."""
        if finding.verdict == "drift":
            yield StyledLine(f"failed: {finding.reason}", "bad")
            yield from map(StyledLine, _changed_answers(comparison))
            yield StyledLine(
                "if the new answers are right, accept them with --dst-update-baseline, or allow a "
                "share of changed turns with dst_max_clean_drift",
                "dim",
            )
        elif finding.verdict == "regression":
            yield StyledLine(f"failed: {finding.reason}", "bad")
        elif finding.verdict == "inconclusive":
            yield from filter(None, [self._finding(finding)])
        elif not self._quiet:
            yield StyledLine(f"passed: {finding.reason}", "good")

    def _finding(self, finding: LimitFinding) -> StyledLine | None:
        if finding.verdict == "regression":
            return StyledLine(f"failed: {finding.reason}", "bad")
        if finding.verdict == "inconclusive":
            return StyledLine(f"inconclusive: {finding.reason}", self._unsure)
        # A limit that holds is not worth a line, except for a change of a rate.
        moved = finding.gate in ("max-regression", "max-estimated-rise")
        shown = moved and not self._quiet
        return StyledLine(f"passed: {finding.reason}", "good") if shown else None

    @property
    def _unsure(self) -> Style:
        return "bad" if self._settings.gate.inconclusive == "fail" else "warning"


def _compared(judgement: Judgement) -> Iterator[str]:
    """Yield lines about the comparison with the baseline: coverage, estimates, weaknesses."""
    figures = judgement.comparison or {}
    if not judgement.not_compared:
        yield from _variants(figures)
    both, tested = figures["dialogues"], figures["tested_dialogues"]
    if both != tested:
        yield f"compared: {both:,} of the {tested:,} dialogues of this run"
    if expected := describe_expected(figures):
        yield expected
    moved, which = moved_weaknesses(figures)
    yield from filter(None, [moved])
    yield from (f"  {line}" for line in which[:_MOST_WEAKNESSES])
    if len(which) > _MOST_WEAKNESSES:
        yield f"  and {len(which) - _MOST_WEAKNESSES} more, in the JSON report (--dst-report)"
    for text, names in list_moved_dialogues(figures):
        yield f"{text}: {len(names):,} ({format_list(names, _MOST_NAMES)})"


def _not_compared(figures: Mapping[str, Any]) -> str:
    """Return ``variants not`` if estimated failures were compared, otherwise ``not``."""
    expected = figures.get("estimated_failures")
    return "not" if expected is None or expected["reason"] else "variants not"


def _remedy(judgement: Judgement) -> str:
    """Return advice on how to make two builds comparable again."""
    written = (judgement.comparison or {}).get("baseline", {}).get("version", __version__)
    text = (
        "write the baseline again with --dst-update-baseline, on the same build as before; with "
        "dst_inconclusive=allow, runs without a comparison pass"
    )
    if written != __version__:
        text = (
            f"pytest-dstfuzz {written} wrote the baseline, and this version is {__version__}: "
            f"install the same version for every build (pytest-dstfuzz=={written}), or {text}"
        )
    return text


def _variants(figures: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines about the compared variants and their differences."""
    yield (
        f"compared with the baseline ({figures['baseline']['model']}): "
        f"{format_count(figures['variants'], 'variant')} of "
        f"{format_count(figures['turns'], 'turn')} in "
        f"{format_count(figures['dialogues'], 'dialogue')}"
    )
    if figures["difference"] is not None:
        new, gone = len(figures["new_violations"]), len(figures["gone_violations"])
        p_value = "" if figures["p_value"] is None else f", p = {figures['p_value']:.4f}"
        yield (
            f"failure rate on them: {percent(figures['before'])} in the baseline, "
            f"{percent(figures['after'])} now ({points(figures['difference'])}{p_value}); "
            f"{format_count(new, 'violation')} {'is' if new == 1 else 'are'} new, {gone:,} "
            f"{'is' if gone == 1 else 'are'} gone"
        )
    yield from relation_lines(figures)
    if figures["share"] is not None and figures["share"] < 1:
        share = percent(figures["share"])
        yield f"{share} of the variants are the same and were answered in both builds"
    if figures["only_baseline"] or figures["only_run"]:
        yield (
            f"turns only in the baseline: {figures['only_baseline']:,}, only in this run: "
            f"{figures['only_run']:,}"
        )


def _changed_answers(figures: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines about the changed clean answers of the first turns."""
    found = list_changed_answers(figures)
    yield from (f"  {turn}: {text}" for turn, text in found[:_MOST_NAMES])
    if len(found) > _MOST_NAMES:
        more = format_count(len(found) - _MOST_NAMES, "more turn")
        yield f"  and {more}, in the JSON report (--dst-report)"
