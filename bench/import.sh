#!/bin/bash
# import.sh: how long rows of an accounting take to import, and the rows as-it-was and slurm of compare.
# HEDDLE_BIN (default: build/release/heddle), ROWS (default: 50000).
set -eu
cd "$(dirname "$0")/.."
heddle=${HEDDLE_BIN:-$PWD/build/release/heddle}
rows=${ROWS:-50000}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cluster=a100:64,k80:64,v100:128

timed()                 # WORDS COMMAND...
{
	local began words=$1
	shift
	began=$(date +%s%N)
	"$@" >"$work/out" 2>&1
	printf '%-40s %8d ms\n' "$words" $((($(date +%s%N) - began) / 1000000))
}
# a cluster with room, and one whose queue grows: a pass costs by the jobs that wait
for load in 0.55 0.8; do
	python3 tests/sacct_generate.py "$rows" 1 $cluster $load >"$work/sacct.txt"
	printf 'load %s: %s rows, %s bytes\n' $load "$rows" "$(wc -c <"$work/sacct.txt")"
	timed "import" "$heddle" sched import "$work/sacct.txt" -o "$work/month.csv"
	printf '%s jobs\n' $(($(wc -l <"$work/month.csv") - 1))
	timed "compare as-it-was" "$heddle" sched compare --trace "$work/month.csv" --cluster $cluster \
		--policy as-it-was
	timed "compare slurm" "$heddle" sched compare --trace "$work/month.csv" --cluster $cluster \
		--policy slurm
	timed "compare slurm, EASY" "$heddle" sched compare --trace "$work/month.csv" --cluster $cluster \
		--policy slurm --slurm backfill=easy
done
