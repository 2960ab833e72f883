#!/usr/bin/env bash
# The gate before a release: the build must not be worse than the last one, nor above a fixed
# rate, and what did not decide is not a pass. Then its outcomes become the new baseline.
#
#   DST_MODEL=my_bot:track DST_DATA=conversations.jsonl ./release_gate.sh [more pytest options]
#
# Exit status: 0 may be released, 1 regression or a rate above its limit, 6 the tracker could
# not be tested, 7 not enough dialogues to decide, 8 the clean answers changed at more turns than
# DST_MAX_CLEAN_DRIFT allows, 9 nothing could be compared with the baseline (another version of
# pytest-dstfuzz, other settings or data); 2 and 4 as pytest has them.
set -euo pipefail

: "${DST_MODEL:?name the tracker, such as my_bot:track}"
: "${DST_DATA:=sample}"
: "${DST_BASELINE:=dst-baseline.json}"
: "${DST_SUITE:=tests/robustness}"
: "${DST_MAX_FAILURE_RATE:=30%}"
: "${DST_MAX_CLEAN_DRIFT:=0%}"
: "${DST_OUT:=robustness}"

dstfuzz check-tracker --model "$DST_MODEL" --data "$DST_DATA"

run() {
  pytest "$DST_SUITE" --dst-model="$DST_MODEL" --dst-data="$DST_DATA" \
    --dst-search=random --dst-turns=all --dst-baseline="$DST_BASELINE" "$@"
}

if [ -f "$DST_BASELINE" ]; then
  run -o dst_inconclusive=fail \
    -o dst_max_clean_drift="$DST_MAX_CLEAN_DRIFT" \
    --dst-max-failure-rate="$DST_MAX_FAILURE_RATE" \
    --dst-report="$DST_OUT/report.json" --dst-report="$DST_OUT/report.html" \
    --junitxml="$DST_OUT/junit.xml" "$@"
fi
run --dst-update-baseline "$@"
echo "commit $DST_BASELINE with the release"
if [ -f "$DST_OUT/report.json" ] && grep -q '"outcome": "violation"' "$DST_OUT/report.json"; then
  # For people: are these violations real? Fill the sheet in, then:
  #   dstfuzz audit robustness/report.json --judgements robustness/audit.csv
  # It decides nothing: judgements of an earlier report may still be there, and refuse this one.
  dstfuzz audit "$DST_OUT/report.json" --sheet "$DST_OUT/audit.csv" || echo "no sheet to judge"
fi
