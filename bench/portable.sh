#!/bin/bash
# portable.sh -- what the promise of equal bits on every CPU costs: our kernels against the library's
# (docs/adr/0015). Prints a page:
#
#	bench/portable.sh >docs/results/portable.md
#
# `job.kernels: portable` and `library` in turn, twice; of each the best median and the least time. Both train
# the same problem; the largest relative difference of their losses over the steps is printed.
#
# HD_BENCH_STEPS (default 20), HD_BENCH_JOBS (default "gpt-byte resnet18"), HD_BENCH_DEVICES (default: 1 and
# all cores)
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
heddle=${HEDDLE_BIN:-build/release/heddle}
[ -x "$heddle" ] || { echo "portable: $heddle is missing; run ./dev build first" >&2; exit 2; }
"$heddle" version | grep -q 'dnnl=yes' || {
	echo "portable: this build has no library kernels to compare with (HD_DNNL)" >&2
	exit 2
}
steps=${HD_BENCH_STEPS:-20} cores=$(nproc)
devices=${HD_BENCH_DEVICES:-$([ "$cores" = 1 ] && echo 1 || echo "1 $cores")}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
member() { sed -n "s/.*\"$1\":\([0-9.e+-]*\).*/\1/p" "$2"; }
best() { printf '%s\n' "$(member "$1" "$work/$2.1")" "$(member "$1" "$work/$2.2")" | sort -g | head -n 1; }
losses() { grep -o '"losses":\[[^]]*' "$1" | sed 's/.*\[//' | tr , '\n'; }

echo '# Portable kernels against the library'
echo
echo "$(made_by portable.sh), $cores cores; $steps steps a round, 2 rounds in turn."
echo 'ms a step; ratio: portable / library, of medians and of least times. `portable` has the same bits on'
echo 'every x86-64 processor; `library` lets oneDNN compute what it computes faster.'
echo
echo '| job | devices | portable | library | ratio | least: portable | library | ratio | losses differ by |'
echo '|---|--:|--:|--:|--:|--:|--:|--:|--:|'
for job in ${HD_BENCH_JOBS:-gpt-byte resnet18}; do
	for n in $devices; do
		for round in 1 2; do
			for kernels in portable library; do
				"$heddle" bench step "bench/jobs/$job.yaml" --devices "$n" --repeat "$steps" \
					--json -q -s job.kernels="$kernels" --save "$work/problem" \
					>"$work/$kernels.$round"
			done
		done
		diff=$(paste <(losses "$work/portable.1") <(losses "$work/library.1") |
			awk '{ d = ($1 - $2) / $2; d = d < 0 ? -d : d; if (d > most) most = d }
				END { printf "%.1e", most }')
		awk -v j="$job" -v n="$n" -v d="$diff" \
			-v p="$(best step_ms_median portable)" -v l="$(best step_ms_median library)" \
			-v pm="$(best step_ms_min portable)" -v lm="$(best step_ms_min library)" 'BEGIN {
				printf "| %s | %d | %.1f | %.1f | %.2f", j, n, p, l, p / l
				printf " | %.1f | %.1f | %.2f | %s |\n", pm, lm, pm / lm, d }'
	done
done
