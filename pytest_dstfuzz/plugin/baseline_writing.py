"""The baseline of a session, written at its end; of a selection beside the turns that stay."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.files import write_text
from pytest_dstfuzz.gate.baseline import Baseline, Session, make_baseline
from pytest_dstfuzz.gate.baseline_file import baselines_text, read_baselines
from pytest_dstfuzz.gate.update import Update, update_all
from pytest_dstfuzz.gate.verdict import Judgement
from pytest_dstfuzz.printable import counted
from pytest_dstfuzz.report.page import StyledLine
from pytest_dstfuzz.trackers.tracker import NAMELESS


def write_baselines(
    judged: Mapping[str, tuple[Session, Judgement]], settings: Settings, *, narrowed: bool
) -> StyledLine:
    """Write the baselines of all trackers, and say so; or why not.

    Args:
        judged: by the name of a tracker its results and the verdict on them.
        settings: the options.
        narrowed: whether some of the tests were selected.
    """
    path, variants = Path(settings.gate.baseline or ""), 0
    if settings.variant.variant is not None:
        return _not_written("with --dst-variant a turn has one variant alone")
    baselines: dict[str, Baseline] = {}
    contents: dict[str, tuple[str, ...]] = {}
    for name, (session, judgement) in judged.items():
        answers = (each.reason for each in judgement.findings if each.gate == "clean-answers")
        if why := session.ended or "; ".join([*judgement.troubles, *answers]):
            return _not_written(f"{name}: {why}" if name else why)
        baselines[name] = make_baseline(
            session.groups,
            session.campaign,
            name or str(settings.tracker.model or NAMELESS),
            session.contents,
            # Keeps back what the reports do.
            hidden=settings.output.redact,
            varies=session.varies,
        )
        contents |= {name: tuple(keys) for name, keys in session.contents.items()}
        variants += sum(len(turn.variants) for turn in session.results)
    try:
        updated = _updated(path, baselines, contents, narrowed=narrowed)
        if updated.refused:
            return _not_written(updated.refused)
        write_text(path, baselines_text(updated.baselines))
    except UserError as error:
        return _not_written(str(error))
    outcomes = f"the outcomes of {variants:,} variants"
    if not updated.kept:
        return StyledLine(f"{outcomes} are now the baseline {path}", "good")
    stay = "stays as it was" if updated.kept == 1 else "stay as they were"
    rest = f"{counted(updated.kept, 'turn')} that this run did not test {stay}"
    return StyledLine(f"{outcomes} are now in the baseline {path}; {rest}", "good")


def _not_written(why: str) -> StyledLine:
    return StyledLine(f"failed: the baseline was not written: {why}", "bad")


def _updated(
    path: Path,
    baselines: Mapping[str, Baseline],
    contents: Mapping[str, tuple[str, ...]],
    *,
    narrowed: bool,
) -> Update:
    """Return what is to be written: turns that were not run stay."""
    if not path.exists():
        return Update(baselines)
    try:
        old = read_baselines(path)
    except UserError:
        if narrowed:  # A file that cannot be read may hold all the other turns.
            raise
        return Update(baselines)
    return update_all(old, baselines, contents, narrowed=narrowed)
