#!/bin/bash
# graph_accuracy.sh JOB GRAPH [SEEDS] -- accuracy on the test set of a job on a prepared graph (of the end, or
# of the state that checkpoint.best keeps), over seeds 0 to SEEDS - 1 (10): one line a seed, then mean and
# standard deviation. Further words are options of `heddle run`.
set -eu -o pipefail
heddle=${HEDDLE_BIN:-build/release/heddle}
job=$1 graph=$2 seeds=${3:-10}
shift $(($# < 3 ? $# : 3))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for ((seed = 0; seed < seeds; seed++)); do
	"$heddle" run "$job" -q --json --out "$work/$seed" -s data.path="$graph" -s job.seed=$seed "$@" |
		sed -n 's/.*"test_accuracy":\([0-9.e-]*\).*/\1/p' | tee -a "$work/all"
done
awk '{ s += $1; q += $1 * $1 } END { m = s / NR
	printf "mean %.2f %%, deviation %.2f, of %d seeds\n", 100 * m,
	100 * sqrt(NR > 1 ? (q - NR * m * m) / (NR - 1) : 0), NR }' "$work/all"
