#!/bin/bash
# redundancy.sh -- what shadows of stages cost a step: simulated, and in the runtime. Prints the table of
# docs/results/redundancy.md:
#
#	bench/redundancy.sh                        # some two minutes
# HD_BENCH_RANKS=12 HD_BENCH_VNS=24 HD_BENCH_STEPS=5 HD_BENCH_ROUNDS=3 HD_BENCH_PACE=40 bench/redundancy.sh
#
# Ranks of one process that wait what a core was measured to take, HD_BENCH_PACE times as long (null devices):
# they need no core for it, so the runtime is compared with the simulation, not kernels. Lists are those of
# `heddle plan show --redundancy` for 1f1b with a backward of two forwards.
#
# Each run measures its ops, predicts the step of its lists with these costs, then trains; the costs of two
# runs differ by some percent, so times of two runs say little. A run's least step over its own prediction
# does: measured = (1 + simulated) x that of the mode / that of `none` - 1. Medians of so many rounds.
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
heddle=$(readlink -f "${HEDDLE_BIN:-build/release/heddle}")
[ -x "$heddle" ] || { echo "redundancy: $heddle is missing; run ./dev build first" >&2; exit 2; }
ranks=${HD_BENCH_RANKS:-12} vns=${HD_BENCH_VNS:-24} steps=${HD_BENCH_STEPS:-5} rounds=${HD_BENCH_ROUNDS:-3}
pace=${HD_BENCH_PACE:-40}
work=$(mktemp -d)
trap 'rm -rf "${work:?}"' EXIT
cat >"$work/job.yaml" <<JOB
job: {name: redundancy, seed: 3, steps: 1000}
model: {use: "builtin:gpt", args: {layers: $ranks, width: 64, heads: 4, context: 32, vocab: 64}}
data: {kind: synthetic, count: 512}
batch: {global: $((2 * vns)), virtual_nodes: $vns}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 100000 steps, keep: 1}
eval: {every: 0}
trace: {digest: 1000}
JOB
field() { grep -o "\"$1\":[0-9.e+-]*" "$work/json" | head -n 1 | cut -d : -f 2; }
run()
{
	rm -rf "${work:?}/run"
	"$heddle" run "$work/job.yaml" --out "$work/run" --devices "paced:$ranks:$pace" -q --json \
		--explain "$@" >"$work/json" 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
}

run --steps 1 -s parallel.mode=pipeline -s parallel.schedule=1f1b
cp "$work/run/plan/0000.plan" "$work/of"
rows='none - lazy - eager gaps eager receives full gaps'
set -- $rows
while [ $# -gt 0 ]; do
	"$heddle" plan show "$work/of" --costs 1,2 --redundancy "$1" \
		$([ "$2" = - ] || echo "--shadows $2") >"$work/lists"
	{ grep -v '^[0-9]*:' "$work/of"; grep '^[0-9]*:' "$work/lists"; } >"$work/$1.$2.plan"
	shift 2
done
echo "$(date -u +%Y-%m-%d), $(processor), $(nproc) cores, load $(cut -d ' ' -f 1-3 /proc/loadavg) at the" \
	"beginning, $("$heddle" version | head -n 1)"
echo "$ranks ranks that wait $pace times what a core takes, $vns virtual nodes, 1f1b, $steps steps," \
	"$rounds rounds"
for ((i = 0; i < rounds; i++)); do
	set -- $rows
	while [ $# -gt 0 ]; do
		run --steps "$steps" --plan "$work/$1.$2.plan"
		echo "$1.$2 $(field predicted_ms) $(field least_ms)" >>"$work/all"
		shift 2
	done
done
echo
echo "| mode | work of shadows | simulated ms | least ms | simulated | measured | points between |"
echo "|---|---|--:|--:|--:|--:|--:|"
awk '
function median(key, n,   i, j, t, a) {
	for (i = 1; i <= n; i++) a[i] = v[key, i] + 0
	for (i = 1; i <= n; i++)
		for (j = i + 1; j <= n; j++)
			if (a[j] < a[i]) { t = a[i]; a[i] = a[j]; a[j] = t }
	return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2
}
!($1 in n) { order[++rows] = $1 }
{ n[$1]++; v["p" $1, n[$1]] = $2; v["l" $1, n[$1]] = $3; v["r" $1, n[$1]] = $3 / $2 }
END {
	for (k = 1; k <= rows; k++) {
		m = order[k]; p = median("p" m, n[m]); l = median("l" m, n[m]); r = median("r" m, n[m])
		if (k == 1) { p0 = p; r0 = r }
		sim = p / p0 - 1; got = (1 + sim) * r / r0 - 1
		split(m, w, ".")
		printf "| %s | %s | %.1f | %.1f | %.1f %% | %.1f %% | %.1f |\n", w[1], w[2], p, l, \
			100 * sim, 100 * got, 100 * (got - sim)
	}
}' "$work/all"
