#!/usr/bin/env bash
# One part of a campaign for each task of a Slurm array; slurm_gate.sh puts them together:
#
#   export DST_MODEL=my_bot:track DST_DATA=conversations.jsonl DST_PARTS=4
#   array=$(sbatch --parsable --array=1-4 slurm_shard.sh)
#   sbatch --dependency=afterok:"$array" slurm_gate.sh
#
# A task that was killed or ran into its time limit goes on where it was, with the same line and the
# number of the task: sbatch --array=3 slurm_shard.sh
#SBATCH --job-name=dstfuzz-shard
#SBATCH --array=1-4
#SBATCH --cpus-per-task=1
#SBATCH --time=08:00:00
#SBATCH --requeue
set -euo pipefail

: "${DST_MODEL:?name the tracker, such as my_bot:track}"
: "${DST_DATA:=sample}"
# How many parts there are: the last task of the array, also where one is run alone.
: "${DST_PARTS:=4}"
# In a file system that all nodes share.
: "${DST_SHARDS:=shards}"

dstfuzz campaign --model="$DST_MODEL" --data="$DST_DATA" --search=random --turns=all \
  --shard="$SLURM_ARRAY_TASK_ID/$DST_PARTS" --results="$DST_SHARDS/part-$SLURM_ARRAY_TASK_ID" "$@"
