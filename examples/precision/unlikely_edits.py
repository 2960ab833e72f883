"""How many violations of a JSON report hang on edits that hardly anybody types.

    python unlikely_edits.py report.json

Those are a look-alike letter of another alphabet or with an accent, and an emoji. Counted twice:
violations that have such an edit somewhere, in their turn or in its context, and those that need
one: it is left when all edits are gone that can be spared (the minimal version; of a report made
with --no-dst-shrink there is none).
"""

import sys
from collections import Counter
from pathlib import Path

from pytest_dstfuzz.report.json_report import read_report

NAMES = {"look_alike": "a look-alike letter", "emoji": "an emoji"}


def kinds(version):
    edits = [*version["edits"], *(e for past in version["context_edits"] for e in past["edits"])]
    return {NAMES[edit["operator"]] for edit in edits if edit["operator"] in NAMES}


def main(path):
    turns = read_report(path)["turns"]
    found = [v for turn in turns for v in turn["variants"] if v["outcome"] == "violation"]
    if not found:
        sys.exit("the report has no violations")
    for what, versions in (
        ("with such an edit", found),
        ("that need one", [v["minimal"] for v in found if v["minimal"]]),
    ):
        counts = Counter(name for version in versions for name in kinds(version))
        some = sum(bool(kinds(version)) for version in versions)
        print(f"{what}: {some} of {len(versions)}", dict(sorted(counts.items())))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
