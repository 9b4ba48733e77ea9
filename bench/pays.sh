#!/bin/bash
# pays.sh -- what a pipeline is worth beside data parallelism for VGG-16 by its published profile, on 4 and 16
# workers, and the most that any plan could be worth there. Prints the table of docs/results/pays.md. Nothing
# is timed: figures are predictions, equal on every machine. HEDDLE_SHARED names the folder with
# data/pipedream; the profile is of 128 samples a minibatch and was trained with 64: times and activations
# are halved, as bench/pipedream.sh does.
#
# Links: 10 Gb/s as published, and slower. Data parallelism is that of the simulator, its sums beside backward
# in buckets of 25 MB. The bound is a plan that divides the compute evenly and sends nothing. Counted: what
# the authors' program takes for data parallelism on the same link, 4 (m - 1)/m of the weights behind the
# compute, none of it beside backward; the last column is the best plan over that.
set -eu
cd "$(dirname "$0")/.."
heddle=$(realpath "${HEDDLE_BIN:-build/release/heddle}")
[ -x "$heddle" ] || { echo "bench: $heddle is missing; run ./dev build first" >&2; exit 2; }
data=${HEDDLE_SHARED:-../shared}/data/pipedream
[ -f "$data/vgg16.graph.txt" ] || { echo "bench: no $data/vgg16.graph.txt: set HEDDLE_SHARED" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk '/^\t/ { print; next }
	{
		n = split($0, f, " -- "); m = split(f[3], c, ", "); line = f[1] " -- " f[2] " -- "
		for (i = 1; i <= m; i++) {
			split(c[i], kv, "=")
			if (kv[1] == "activation_size") kv[2] = int(kv[2] / 2)
			else if (kv[1] != "parameter_size") kv[2] = sprintf("%.3f", kv[2] / 2)
			line = line (i > 1 ? ", " : "") kv[1] "=" kv[2]
		}
		print line
	}' "$data/vgg16.graph.txt" >"$work/vgg16.graph.txt"
plan()          # MACHINES BANDWIDTH [--simulate]
{
	"$heddle" plan partition --graph "$work/vgg16.graph.txt" --machines "$1" --bandwidth "$2" --json $3
}
number() { grep -o "\"$1\":[0-9.e+-]*" <<<"$2" | head -n 1 | cut -d : -f 2; }
echo "| workers | Gb/s | data parallel, minibatches/s | best plan | its minibatches/s | times | at most |" \
	"counted | times that |"
echo "|--:|--:|--:|---|--:|--:|--:|--:|--:|"
for machines in 4 16; do
	for gbit in 10 7.5 5 2.5 1; do
		bandwidth=$(awk -v g=$gbit 'BEGIN { print g * 125e6 }')
		counted=$(plan $machines "$bandwidth" "")
		alone=$(number one_machine_s "$counted") slow=$(number data_parallel_s "$counted")
		said=$(plan $machines "$bandwidth" --simulate)
		best=$(grep -o '"best":"[^"]*"' <<<"$said" | cut -d '"' -f 4)
		split=$(grep -o '"split":"[^"]*"' <<<"$said" | head -n 1 | cut -d '"' -f 4)
		gain=$(number gain "$said") rate=$(number minibatches_s "$said")
		awk -v m=$machines -v g=$gbit -v gain="$gain" -v rate="$rate" -v alone="$alone" \
			-v slow="$slow" -v how="$best, ${split#L1: }" 'BEGIN {
			data = rate / gain
			printf "| %d | %s | %.2f | %s | %.2f | %.2f | %.2f | %.2f | %.2f |\n", m, g, data, \
				how, rate, gain, m / alone / data, 1 / slow, rate * slow }'
	done
done
