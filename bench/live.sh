#!/bin/bash
# 12 real jobs on 2 types of devices, one of each: when each was over, live and by the simulator, under the same policy and rounds; and
# whether every job ended with the bits of its undisturbed run.
#
#	bench/live.sh [POLICY [ROUND]]       las, 6 s
#
# First each of two kinds of jobs runs alone on each type: that gives its rates (steps/s over the second half) and what a start and a
# preemption cost. The simulator gets these figures and the instants of the live submissions, and nothing else of the live run.
# HD_LIVE_SECONDS (8): how long a job is, alone on the fast type. The two cores must be free: a shared machine shows in the figures.
set -eu
cd "$(dirname "$0")/.."
heddle=${HEDDLE_BIN:-$PWD/build/release/heddle}
[ -x "$heddle" ] || { echo "no program at $heddle; ./dev build makes it" >&2; exit 2; }
command -v curl >/dev/null || { echo "no curl, which speaks to the scheduler's socket" >&2; exit 2; }
policy=${1:-las} round=${2:-6} seconds=${HD_LIVE_SECONDS:-8} every=${HD_LIVE_EVERY:-3}
work=$(mktemp -d) pid=
cleanup()
{
	[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null || true
	for seat in "$work"/D/devices/* "$work"/D/runs/*/seat; do
		[ -s "$seat" ] && read -r _ _ who _ <"$seat" && [ "$(readlink "/proc/$who/exe")" = "$(readlink -f "$heddle")" ] && kill -9 "$who"
	done 2>/dev/null || true
	rm -rf "$work"
}
trap cleanup EXIT
cd "$work"
for kind in A B; do
	cat >$kind.yaml <<END
job: {name: $kind, seed: 0, steps: 100000}
model: {use: "builtin:mlp", args: {input: [1, 16, 16], hidden: [$([ $kind = A ] && echo "256, 256" || echo "640, 256")], classes: 4}}
data: {kind: synthetic, count: 1024}
batch: {global: 512, virtual_nodes: 8}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 1000000 steps, keep: 2}
eval: {every: 0}
trace: {digest: 1000}
END
done
ask() { curl -sS --max-time 20 --unix-socket D/heddle.sock "http://localhost$1" "${@:2}"; }
post() { ask "$1" -H 'Content-Type: application/json' --data-binary "$2" >/dev/null; }
submit() { post /v1/jobs "{\"job\":\"$(sed 's/"/\\"/g; s/$/\\n/' "$1.yaml" | tr -d '\n')\",\"folder\":\"$work\",\"set\":[\"job.steps=$2\",\"job.seed=$3\"],\"rates\":$4}"; }
get() { grep -o "\"$1\":[^,}]*" | head -n 1 | cut -d: -f2 | tr -d '"'; }
reach() { for _ in $(seq 3000); do [ "$(ask "/v1/jobs/$1" | get state)" = "$2" ] && return; sleep 0.05; done; echo "job $1 is not $2: $(ask "/v1/jobs/$1")" >&2; exit 1; }
"$heddle" serve --dir "$work/D" --pool fast:1:2,slow:1:1 --policy "$policy" --round "$round" >serve.out 2>serve.err &
pid=$!
for _ in $(seq 100); do ask /v1/status >/dev/null 2>&1 && break; sleep 0.05; done

# ---- each kind alone on each type ----
rate_of() # RUN: steps/s over the second half of its records
{
	grep -o '"step":[0-9]*,"t":[0-9.]*' "$1/metrics.ndjson" | sed 's/[^0-9.]\+/ /g' | awk '{ s[NR] = $1; t[NR] = $2 } END { h = int(NR / 2); printf "%.4f", (s[NR] - s[h]) / (t[NR] - t[h]) }'
}
id=0
for kind in A B; do
	submit $kind 100000 1 '{"slow":0}'
	submit $kind 100000 1 '{"fast":0}'
	id=$((id + 2))
	reach $((id - 1)) running
	reach $id running
	sleep 5
	declare "fast_$kind=$(rate_of "D/runs/$((id - 1))-$kind")" "slow_$kind=$(rate_of "D/runs/$id-$kind")"
	if [ $kind = B ]; then                    # a preemption, alone: the device goes and comes
		post /v1/devices/fast-0 '{"usable":false}'
		for _ in $(seq 200); do ask "/v1/events/past?job=$((id - 1))" | grep -q '"kind":"left"' && break; sleep 0.05; done
		post /v1/devices/fast-0 '{"usable":true}'
	fi
	for j in $((id - 1)) $id; do post /v1/jobs/$j/cancel '{}'; done
	for j in $((id - 1)) $id; do reach $j cancelled; done
done
at() { ask "/v1/events/past?job=$1&limit=1000" | tr '{' '\n' | grep "\"kind\":\"$2\"" | head -n 1 | get at_s; }
preempt=$(awk -v a="$(at 3 leave)" -v b="$(at 3 left)" 'BEGIN { printf "%.3f", b - a }')
start=0
for j in 1 2; do                              # what of its time a run did not compute, from the order to start to the last record
	run=$(ls -d D/runs/$j-*)
	last=$(grep -o '"step":[0-9]*' "$run/metrics.ndjson" | tail -n 1 | cut -d: -f2)
	rate=$([ $j = 1 ] && echo "$fast_A" || echo "$slow_A")
	start=$(awk -v s="$start" -v a="$(at $j start)" -v b="$(at $j leave)" -v n="$last" -v r="$rate" 'BEGIN { v = b - a - n / r; printf "%.3f", s + (v > 0 ? v : 0) / 2 }')
done
echo "steps/s alone: A $fast_A fast, $slow_A slow; B $fast_B fast, $slow_B slow; a start costs $start s, a preemption $preempt s"

# ---- live ----
first=$((id + 1))
for i in $(seq 0 11); do
	kind=$([ $((i % 2)) = 0 ] && echo A || echo B)
	f=fast_$kind s=slow_$kind
	steps=$(awk -v r="${!f}" -v s="$seconds" -v i="$i" 'BEGIN { printf "%d", r * s * (0.6 + 0.2 * (i % 5)) }')
	echo "$kind $steps $i" >>jobs.txt
	submit $kind "$steps" "$i" "{\"fast\":${!f},\"slow\":${!s}}"
	sleep "$every"
done
for i in $(seq 0 11); do reach $((first + i)) done; done

# ---- the same by the simulator ----
origin=$(ask "/v1/jobs/$first" | get submitted_s)
while read -r kind steps i; do
	arrival=$(awk -v a="$(ask "/v1/jobs/$((first + i))" | get submitted_s)" -v o="$origin" 'BEGIN { printf "%.3f", a - o }')
	printf '%s (batch size 512)\tx\tx\t-n\t0\t%s\t1\t1\t-1\t%s\n' "$kind" "$steps" "$arrival"
done <jobs.txt >jobs.trace
echo "{\"fast\":{\"('A (batch size 512)', 1)\":{\"null\":$fast_A},\"('B (batch size 512)', 1)\":{\"null\":$fast_B}},\"slow\":{\"('A (batch size 512)', 1)\":{\"null\":$slow_A},\"('B (batch size 512)', 1)\":{\"null\":$slow_B}}}" >rates.json
"$heddle" sched simulate --trace jobs.trace --throughputs rates.json --cluster fast:1,slow:1 --policy "$policy" --round "$round" \
	--min-reset "$(awk -v r="$round" 'BEGIN { printf "%g", r / 2 }')" --switching "$start,$start,$start,$preempt" --rows rows.csv -q >sim.out

# ---- side by side ----
column=$(head -n 1 rows.csv | tr ',' '\n' | grep -n '^jct_s$' | cut -d: -f1)
bad=0 n=0
echo "job kind steps  live s  simulated s  off"
while read -r kind steps i; do
	job=$(ask "/v1/jobs/$((first + i))")
	live=$(awk -v a="$(get submitted_s <<<"$job")" -v b="$(get ended_s <<<"$job")" 'BEGIN { printf "%.2f", b - a }')
	sim=$(sed -n "$((i + 2))p" rows.csv | cut -d, -f"$column")
	awk -v i="$i" -v k="$kind" -v n="$steps" -v l="$live" -v s="$sim" 'BEGIN { printf "%3d %4s %5d %7.2f %12.2f %+5.1f %%\n", i, k, n, l, s, 100 * (l - s) / s }'
	echo "$live $sim" >>both.txt
	get digest <<<"$job" >"digest$i"
done <jobs.txt
kill "$pid"
wait "$pid" 2>/dev/null || true
pid=
awk '{ d = ($1 - $2) / $2; d = d < 0 ? -d : d; s += d; m = d > m ? d : m; a += $1; b += $2 } END { printf "apart by %.1f %% on average, %.1f %% at worst; mean completion %.2f s live, %.2f s simulated\n", 100 * s / NR, 100 * m, a / NR, b / NR }' both.txt
while read -r kind steps i; do
	"$heddle" run $kind.yaml --out "alone$i" --devices 1 -q -s "job.steps=$steps" -s "job.seed=$i" >/dev/null 2>&1 &
	[ $((i % 2)) = 0 ] || wait
done <jobs.txt
wait
while read -r _ _ i; do
	n=$((n + 1))
	[ "$("$heddle" ckpt digest "alone$i")" = "$(cat "digest$i")" ] || { bad=$((bad + 1)); echo "job $i ended with other bits" >&2; }
done <jobs.txt
echo "digests: $((n - bad)) of $n equal to the undisturbed run"
[ $bad = 0 ]
