#!/bin/bash
# elastic.sh -- what several workers cost: against one worker of as many devices, when nothing happens, around
# a change of members, and while a newcomer learns. Times are those between commits, as the run's own metrics
# tell them. Prints the tables of docs/results/elastic.md:
#
#	bench/elastic.sh                                   # all
# HD_BENCH_PARTS="ratio idle pause learner" HD_BENCH_JOBS="gpt-byte resnet18" HD_BENCH_STEPS=12
# HD_BENCH_ROUNDS=3 bench/elastic.sh
#
# Nothing else may run meanwhile; it takes two cores.
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
heddle=$(readlink -f "${HEDDLE_BIN:-build/release/heddle}")
[ -x "$heddle" ] || { echo "elastic: $heddle is missing; run ./dev build first" >&2; exit 2; }
[ "$(nproc)" -gt 1 ] || { echo "elastic: this machine has one core" >&2; exit 2; }
parts=${HD_BENCH_PARTS:-ratio idle pause learner} jobs=${HD_BENCH_JOBS:-gpt-byte resnet18}
steps=${HD_BENCH_STEPS:-12} rounds=${HD_BENCH_ROUNDS:-3} skip=3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
member() { sed -n "s/.*\"$1\":\([0-9.e+-]*\).*/\1/p" "$2"; }
# the mean of the middle half: commits are timed in whole milliseconds
usual()
{
	sort -g | awk '{ v[NR] = $1 }
		END {
			for (i = int(NR / 4) + 1; i <= NR - int(NR / 4); i++) { s += v[i]; n++ }
			printf "%.6f\n", n ? s / n : 0
		}'
}
mean() { awk '{ s += $1 } END { printf "%.6f\n", NR ? s / NR : 0 }'; }
middle() { sort -g | awk '{ v[NR] = $1 } END { printf "%.6f", NR ? v[int((NR + 1) / 2)] : 0 }'; }
calc() { awk "BEGIN { printf \"$1\", $2 }"; }

# gaps FOLDER: "step milliseconds members t" of each commit after the first `skip`
gaps()
{
	sed -n 's/.*"step":\([0-9]*\),"t":\([0-9.e+-]*\),.*"workers":\([0-9]*\).*/\1 \2 \3/p' \
		"$1/metrics.ndjson" |
		awk -v skip=$skip 'NR > skip { print $1, ($2 - t) * 1e3, $3, $2 } { t = $2 }'
}

# run FILE JOB STEPS OPTION...: appends the usual gap to FILE
run()
{
	local file=$1 job=$2 steps=$3
	shift 3
	rm -rf "$work/run"
	"$heddle" run "bench/jobs/$job.yaml" --out "$work/run" --steps "$steps" -s eval.every=0 -q "$@" \
		>"$work/log" 2>&1 ||
		{ cat "$work/log" >&2; exit 1; }
	gaps "$work/run" | cut -d ' ' -f 2 | ${how:-usual} >>"$file"
}

# updates FILE JOB: appends the median ms of norm and optimizer in a step of one device, while another one
# does the same
updates()
{
	"$heddle" bench step "bench/jobs/$2.yaml" --devices 1 --repeat 8 --json -q >"$1.out"
	member update_ms "$1.out" >>"$1"
}

ratio()
{
	cat <<-Y
		## Two workers of one device against one worker of two

		Means in ms of the middle half of $((steps - skip)) steps, the middle of $rounds rounds that
		take turns. Optimizer: what a pass of it takes on one of two devices that both run it whole,
		side by side; two workers do that, the devices of one worker run half of it each, so half of
		it is done twice. Beyond: the rest of the difference, in % of the step of one worker.

		| job | 1 worker x 2 devices | 2 workers x 1 device | ratio | optimizer | twice | beyond % |
		|---|--:|--:|--:|--:|--:|--:|
	Y
	for job in $jobs; do
		rm -f "$work"/*.ms*
		for ((r = 0; r < rounds; r++)); do
			run "$work/one.ms" "$job" "$steps" --workers 1 --devices 2
			run "$work/two.ms" "$job" "$steps" --workers 2 --devices 1
			for c in a b; do updates "$work/copy$c.ms" "$job" & done
			wait
		done
		one=$(middle <"$work/one.ms") two=$(middle <"$work/two.ms")
		pass=$(cat "$work"/copy?.ms | middle)
		echo "| $job | $(calc %.1f "$one") | $(calc %.1f "$two") | $(calc %.3f "$two / $one") |" \
			"$(calc %.1f "$pass") | $(calc %.1f "$pass / 2") |" \
			"$(calc %.1f "100 * ($two - $one - $pass / 2) / $one") |"
	done
	echo
}

idle()
{
	cat <<-Y
		## One worker with the machinery, and without

		\`--workers 1\` against a plain run, two devices; means in ms of the middle half of the steps
		(lenet: of all), the middle of $rounds rounds that take turns.

		| job | steps | plain | --workers 1 | difference % |
		|---|--:|--:|--:|--:|
	Y
	for job in $jobs lenet; do
		n=$steps
		how=usual
		[ "$job" != lenet ] || { n=$((200 * steps)) how=mean; }
		rm -f "$work"/*.ms*
		for ((r = 0; r < rounds; r++)); do
			run "$work/plain.ms" "$job" "$n" --devices 2
			run "$work/one.ms" "$job" "$n" --workers 1 --devices 2
		done
		plain=$(middle <"$work/plain.ms") one=$(middle <"$work/one.ms")
		how=usual
		echo \
			"| $job | $n | $(calc %.2f "$plain") | $(calc %.2f "$one") | $(calc %.2f \
			"100 * ($one - $plain) / $plain") |"
	done
	echo
}

at() { { tail -n 1 "$1/metrics.ndjson" 2>/dev/null || true; } | sed -n 's/.*"step":\([0-9]*\),.*/\1/p'; }
until_step()
{
	while [ "$(at "$1" || echo 0)" = "" ] || [ "$(at "$1")" -lt "$2" ]; do
		kill -0 "$3" 2>/dev/null || return 0
		sleep 0.02
	done
}

# change JOB OPTION...: from one worker to two and back, twice; leaves the run in $work/run
change()
{
	local job=$1 run=$work/run pid
	shift
	rm -rf "$run"
	"$heddle" run "bench/jobs/$job.yaml" --out "$run" --steps 400 -s eval.every=0 -q --workers 1 \
		--devices 1 "$@" >"$work/log" 2>&1 &
	pid=$!
	until_step "$run" 6 $pid
	for n in 2 1 2 1; do
		"$heddle" scale "$run" $n --wait -q
		until_step "$run" $(($(at "$run") + 6)) $pid
	done
	"$heddle" stop "$run" || true
	wait $pid || [ $? = 75 ] || { cat "$work/log" >&2; exit 1; }
}

pause()
{
	cat <<-'Y'
		## The pause of a change

		One worker of one device, another one asked for, and sent away again, twice each, on two
		cores. The longest time between two commits from two before the change to two after it, beyond
		the median of the steps before or after, whichever is longer.

		| job | change | median ms | longest ms | beyond ms | goal: a step + 50 ms |
		|---|---|--:|--:|--:|---|
	Y
	for job in $jobs; do
		change "$job"
		gaps "$work/run" >"$work/gaps"
		for way in "1 2" "2 1"; do
			set -- $way
			awk -v job="$job" -v from="$1" -v to="$2" '
				{ ms[NR] = $2; n[NR] = $3 }
				function median(want, k, i, j, t, v) {
					for (i = 1; i <= NR; i++) if (n[i] == want) v[++k] = ms[i]
					for (i = 2; i <= k; i++)
						for (j = i; j > 1 && v[j - 1] > v[j]; j--) {
							t = v[j]; v[j] = v[j - 1]; v[j - 1] = t
						}
					return v[int((k + 1) / 2)]
				}
				END {
					a = median(from); b = median(to); m = a > b ? a : b
					for (i = 2; i <= NR; i++) if (n[i - 1] == from && n[i] == to)
						for (j = i - 2; j <= i + 2; j++)
							if (j >= 1 && j <= NR && ms[j] > most) most = ms[j]
					printf "| %s | %d to %d | %.0f | %.0f | %.0f | %s |\n", job, from, to,
						m, most, most - m, most - m <= m + 50 ? "met" : "missed"
				}' "$work/gaps"
		done
	done
	echo
}

learner()
{
	cat <<-'Y'
		## Members while a newcomer learns

		One member of one device on core 0, the newcomer on core 1. Steps of the member from the start
		of the newcomer to the change of members, which is asked for 8 steps later, against the usual
		step before.

		| job | usual ms | steps of a transfer | their mean ms | slower % | longest ms |
		|---|--:|--:|--:|--:|--:|
	Y
	for job in $jobs; do
		local run=$work/run pid joiner alone
		rm -rf "$run"
		taskset -c 0 "$heddle" run "bench/jobs/$job.yaml" --out "$run" --steps 400 -s eval.every=0 \
			-q --workers 1 --devices 1 >"$work/log" 2>&1 &
		pid=$!
		until_step "$run" 12 $pid
		alone=$(at "$run")
		taskset -c 1 "$heddle" worker --join "$run" --devices 1 -q >"$work/joiner" 2>&1 &
		joiner=$!
		until_step "$run" $((alone + 8)) $pid
		"$heddle" scale "$run" 2 --wait -q
		until_step "$run" $(($(at "$run") + 2)) $pid
		"$heddle" stop "$run" || true
		wait $pid || true
		wait $joiner || true
		gaps "$run" >"$work/gaps"
		usual=$(awk -v to="$alone" '$1 < to { print $2 }' "$work/gaps" | usual)
		awk -v job="$job" -v from="$alone" -v usual="$usual" '
			$1 > from && $3 == 1 { n++; s += $2; if ($2 > most) most = $2 }
			END {
				m = n ? s / n : 0
				printf "| %s | %.1f | %d | %.1f | %.1f | %.0f |\n", job, usual, n, m,
					n ? 100 * (m / usual - 1) : 0, most
			}' "$work/gaps"
	done
	echo
}

echo "$(made_by elastic.sh), $(nproc) cores."
echo
for part in $parts; do $part; done
