#!/usr/bin/env bash
# The gate on all parts that slurm_shard.sh left. It asks the tracker nothing; settings come from
# the results. Exit status as of release_gate.sh; the first run writes the baseline.
#SBATCH --job-name=dstfuzz-gate
#SBATCH --cpus-per-task=1
#SBATCH --time=01:00:00
set -euo pipefail

: "${DST_BASELINE:=dst-baseline.json}"
: "${DST_SHARDS:=shards}"
: "${DST_SUITE:=tests/robustness}"
: "${DST_OUT:=robustness}"

dstfuzz merge "$DST_SHARDS"/part-* --output "$DST_OUT-results"

judge() {
  pytest "$DST_SUITE" --dst-results="$DST_OUT-results" --dst-baseline="$DST_BASELINE" "$@"
}

if [ -f "$DST_BASELINE" ]; then
  judge -o dst_inconclusive=fail \
    --dst-report="$DST_OUT/report.json" --dst-report="$DST_OUT/report.html" \
    --junitxml="$DST_OUT/junit.xml" "$@"
else
  judge --dst-update-baseline "$@"
fi
