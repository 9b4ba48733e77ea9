#!/bin/bash
# nodes.sh -- what virtual nodes cost on one device: V of them against V times one alone. Prints a page:
#
#	bench/nodes.sh >docs/results/virtual-nodes.md
#
#	HD_BENCH_STEPS (default 50; of lenet ten times as many), HD_BENCH_JOBS (default: all five),
#	HD_BENCH_ROUNDS (default 5)
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
heddle=${HEDDLE_BIN:-build/release/heddle}
[ -x "$heddle" ] || { echo "nodes: $heddle is missing; run ./dev build first" >&2; exit 2; }
steps=${HD_BENCH_STEPS:-50} rounds=${HD_BENCH_ROUNDS:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
member() { sed -n "s/.*\"$1\":\([0-9.e+-]*\).*/\1/p" "$2"; }

# row JOB STEPS MORE...: of several processes; where its pages lie makes a difference to each.
row()
{
	local job=$1 n=$2
	shift 2
	for ((i = 0; i < rounds; i++)); do
		"$heddle" bench step "bench/jobs/$job.yaml" --devices 1 --threads 1 --repeat "$n" \
			--json -q "$@" >"$work/out"
		for what in virtual_nodes_excess virtual_nodes_ms virtual_node_alone_ms folds_ms \
			joins_and_update_ms; do
			member $what "$work/out"
		done | paste -sd ' '
	done | sort -g >"$work/rounds"
	awk -v j="$job${*:+ ${*: -1}}" '{
			e[NR] = $1 * 100; m = int((NR + 1) / 2)
			line[NR] = sprintf("%.3f | %.3f | %.3f | %.3f", $2, $3, $4, $5)
		}
		END { printf "| %s | %s | %.1f | %.1f to %.1f |\n", j, line[m], e[m], e[1], e[NR] }' \
		"$work/rounds"
}

cat <<Y
# What virtual nodes cost

$(made_by nodes.sh).
One device of one thread, ms. A step of 8 nodes, one pass of folds over its gradients and 8 steps of one node
take turns, $steps times (at most 101; the larger models a fifth as often): of these the turn of the middle
excess. Of $rounds processes the middle one, and the range of the excess.
Excess: 8 nodes over 8 x one alone + folds + joins and update. Below zero: waves share what one alone pays for
itself.

| job | 8 nodes | one alone | folds | joins, update | excess % | range |
|---|--:|--:|--:|--:|--:|--:|
Y
for job in ${HD_BENCH_JOBS:-mlp lenet resnet18 gpt-byte gpt-50k}; do
	case $job in
	lenet) for batch in 64 32 16 8; do row "$job" $((10 * steps)) -s batch.global=$batch; done ;;
	mlp)   row "$job" "$steps" ;;
	*)     row "$job" $(((steps + 4) / 5)) ;;              # their steps are hundreds of times as long
	esac
done
