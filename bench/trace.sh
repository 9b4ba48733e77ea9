#!/bin/bash
# trace.sh -- what recording costs: processor time and step time of a run without a recorder, with the flight
# recorder, and with a full trace of every step.
#
#	bench/trace.sh          # the tables of docs/results/trace.md
#
# First what one event takes (trace_event.c, built against the libraries of the build). Then jobs whose steps
# take about 0.1, 1, 4, 20 and 100 ms: the three sides take turns, and each round begins with another one, so
# that what else the machine does meets all of them. Where that is allowed, a run has one core and goes before
# all others (chrt, taskset). Of each side the median round counts; `of off` is the median over rounds of the
# ratio to the round's own side without a recorder, with the second least and second greatest of these ratios.
# The step is the median of a run; processor time is that of the whole run, and what `held` looks at when it
# ends is in it (100,000 events at most, some 50 ms). Ratios of times vary by 1 % from round to round, so they
# cannot show 0.2 %. The second table does: it counts what is recorded in a step, times what each event takes
# by the first table, and what the thread behind takes (trace_share.py).
#
#	HD_BENCH_JOBS     jobs of the table below (default: all)
#	HD_BENCH_ROUNDS   rounds (default 7); 0: the counted table alone
#	HD_BENCH_SECONDS  of a run, about (default 2)
set -eu
cd "$(dirname "$0")/.."
heddle=$(realpath "${HEDDLE_BIN:-build/release/heddle}")
[ -x "$heddle" ] || { echo "bench: $heddle is missing; run ./dev build first" >&2; exit 2; }
rounds=${HD_BENCH_ROUNDS:-7} seconds=${HD_BENCH_SECONDS:-2}
jobs=${HD_BENCH_JOBS:-"small one wide twenty hundred"}
root=$PWD build=$(dirname "$heddle") pin=
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
chrt -r 5 taskset -c 1 true 2>/dev/null && pin="chrt -r 5 taskset -c 1"

events()
{
	local libs=() l
	for l in engine device pipeline data plan job graph wire cost sys trace base; do
		libs+=("$build/libhd_$l.a")
	done
	"${CC:-cc}" -O2 -std=gnu17 -iquote "$root/src" -o event "$root/bench/trace_event.c" \
		-Wl,--start-group "${libs[@]}" -Wl,--end-group -lxxhash -lm -lpthread 2>log ||
		{ echo "bench: no table of events: $(head -n 1 log)" >&2; return 0; }
	echo "| event | ns without a recorder | ns |"
	echo "|---|--:|--:|"
	$pin ./event . 200 | tee events
	echo
}

# small: instructions of a few microseconds, as many events a second as there can be; wide: of a millisecond
job()
{
	case $1 in
	small) hidden='[64, 32]' global=48 us=90 ;;
	one) hidden='[256, 192]' global=192 us=1200 ;;
	wide) hidden='[512, 512]' global=192 us=4500 ;;
	twenty) hidden='[1536, 768]' global=192 us=21000 ;;
	hundred) hidden='[4096, 1536]' global=192 us=100000 ;;
	*) echo "bench: no job $1" >&2; return 1 ;;
	esac
	steps=$((seconds * 1000000 / us))
	cat >"$1.yaml" <<END
job: {name: $1, seed: 3, steps: $steps}
model: {use: "builtin:mlp", args: {input: [1, 16, 16], hidden: $hidden, classes: 4}}
data: {kind: synthetic, count: 1000}
batch: {global: $global, virtual_nodes: 12}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 100000 steps}
eval: {every: 0}
trace: {digest: 100000}
END
}

# processor seconds, and the median step in ms, of one run
once()
{
	local options=() times
	case $2 in off) options=(-s trace.flight_slots=0) ;; full) options=(--trace) ;; esac
	rm -rf out
	TIMEFORMAT='%U %S'
	times=$({ time $pin "$heddle" run "$1.yaml" --out out --devices 1 -q "${options[@]}" \
		>/dev/null 2>&1; } 2>&1)
	awk -v t="$times" 'BEGIN { split(t, a, " "); printf "%.4f ", a[1] + a[2] }'
	grep -o '"step_ms":[0-9.e+-]*' out/metrics.ndjson | cut -d: -f2 | sort -g |
		awk '{ v[NR] = $1 } END { printf "%.5f\n", v[int((NR + 1) / 2)] }'
}

table='
	function sorted(v, n,    i, k, t) {
		for (i = 2; i <= n; i++)
			for (k = i; k > 1 && v[k - 1] > v[k]; k--) {
				t = v[k]
				v[k] = v[k - 1]
				v[k - 1] = t
			}
	}
	{ cpu[NR] = $3; step[NR] = $4; rc[NR] = $3 / $1; rs[NR] = $4 / $2 }
	END {
		m = int((NR + 1) / 2); low = NR > 3 ? 2 : 1; high = NR - low + 1
		sorted(cpu, NR); sorted(step, NR); sorted(rc, NR); sorted(rs, NR)
		printf "| %s | %s | %.3f | %.4f (%.4f to %.4f) | ", name, side, cpu[m], rc[m], rc[low],
			rc[high]
		printf "%.3f | %.4f (%.4f to %.4f) |\n", step[m], rs[m], rs[low], rs[high]
	}'

counted()
{
	[ -s events ] || return 0
	for name in $jobs; do job "$name"; done
	$pin python3 "$root/bench/trace_share.py" "$heddle" events $(printf '%s.yaml ' $jobs)
	echo
}

events
counted
[ "$rounds" -gt 0 ] || exit 0
echo "| job, steps | recorder | processor s | of off | step ms | of off |"
echo "|---|---|--:|--:|--:|--:|"
for name in $jobs; do
	job "$name"
	rm -f off flight full
	for ((r = 0; r < rounds; r++)); do
		sides=(off flight full)
		for ((i = 0; i < 3; i++)); do
			side=${sides[$(((r + i) % 3))]}
			once "$name" "$side" >>"$side"
		done
	done
	for side in off flight full; do
		paste off "$side" | awk -v name="$name, $steps" -v side="$side" "$table"
	done
done
