#!/bin/bash
# Two workers, one of them slowed, with even shares, with shares of its own accord, the fast one alone, and
# what this machine would give at best: two runs of one worker each, the second one slowed, that know nothing
# of each other. All take turns; side by side in one call.
#
# bench/uneven.sh [SLOW [STEPS [ROUNDS]]] 3 times as slow, 30 steps of each are timed, in 1 round; medians of
# the rounds
#
# The best: each computes whole steps beside the other, so together they end 1/a + 1/b steps in a second. What
# one core takes from the other (memory, caches, a host that gives less) is in a and b; what shares and an
# exchange cost is not. It is measured, not derived.
#
# The second worker is slowed by a CPU quota (a control group, version 2 or 1: root), else by the worker's own
# --slow, which sleeps after computing. Time of a step is wall time between commits (t of metrics.ndjson),
# mean of the last STEPS.
set -eu
cd "$(dirname "$0")/.."
heddle=${HEDDLE_BIN:-$PWD/build/release/heddle}
[ -x "$heddle" ] || { echo "no program at $heddle; ./dev build makes it" >&2; exit 2; }
slow=${1:-3} steps=${2:-30} rounds=${3:-1} job=${HD_UNEVEN_JOB:-} period=${HD_UNEVEN_PERIOD:-20000}
work=$(mktemp -d)
group=
cleanup()
{
	kill $(jobs -p) 2>/dev/null || true
	wait
	[ -z "$group" ] || rmdir "$group" 2>/dev/null || true
	rm -rf "$work"
}
trap cleanup EXIT
cd "$work"
if [ -n "$job" ]; then cp "$job" job.yaml; else cat >job.yaml <<'END'
job: {name: uneven, seed: 3, steps: 100000}
model: {use: "builtin:gpt", args: {layers: 4, width: 128, heads: 4, context: 128, vocab: 256}}
data: {kind: synthetic, count: 512}
batch: {global: 256, virtual_nodes: 16}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 100000 steps, keep: 1}
eval: {every: 0}
trace: {digest: 1000}
END
fi

quota() # quota PID: that process gets 1/slow of a core
{
	if [ -f /sys/fs/cgroup/cgroup.controllers ] && grep -qw cpu /sys/fs/cgroup/cgroup.controllers; then
		group=/sys/fs/cgroup/heddle-uneven-$$
		mkdir "$group" && echo "$((period / slow)) ${period}" >"$group/cpu.max"
	elif [ -d /sys/fs/cgroup/cpu ]; then
		group=/sys/fs/cgroup/cpu/heddle-uneven-$$
		mkdir "$group" && echo ${period} >"$group/cpu.cfs_period_us" &&
			echo $((period / slow)) >"$group/cpu.cfs_quota_us"
	else
		return 1
	fi && echo "$1" >"$group/cgroup.procs"
}
step() { cat "$1/metrics.ndjson" 2>/dev/null | wc -l; }
reach()
{
	for _ in $(seq 4000); do
		[ "$(step "$1")" -ge "$2" ] && return
		sleep 0.05
	done
	echo "$1 did not reach step $2" >&2
	exit 1
}
mean() # of the last STEPS steps, ms
{
	tail -n $((steps + 1)) "$1/metrics.ndjson" | grep -o '"t":[0-9.]*' | cut -d: -f2 |
		awk 'NR == 1 { a = $1 } { b = $1 } END { printf "%.1f", (b - a) * 1000 / (NR - 1) }'
}
begin() # begin NAME WORKERS ACT: a run of one device a worker, past its first step
{
	rm -rf "$1"
	"$heddle" run job.yaml --out "$1" --workers "$2" --devices 1 -s elastic.straggler.act="$3" \
		-q >/dev/null 2>"$1.log" &
	reach "$1" 1
}
slowed() # slowed NAME: its last worker gets the quota
{
	local pid
	pid=$("$heddle" status "$1" --json | grep -o '"pid":[1-9][0-9]*' | cut -d: -f2 | tail -n 1)
	quota "$pid" || { echo "no control group for the CPU can be made here" >&2; exit 2; }
}
end() # end NAME...
{
	for name; do "$heddle" stop "$name" --now >/dev/null; done
	wait
	[ -z "$group" ] || { rmdir "$group"; group=; }
}
count() # count NAME: STEPS more, their mean in NAME.ms
{
	reach "$1" $(($(step "$1") + steps + 2))
	mean "$1" >"$1.now"
	{ cat "$1.now"; echo; } >>"$1.ms"
}
measure() # measure NAME WORKERS act: "name ms map"
{
	local name=$1 n=$2 act=$3
	begin "$name" "$n" "$act"
	[ "$n" != 2 ] || slowed "$name"
	if [ "$act" = true ]; then
		for _ in $(seq 4000); do
			grep -q '"kind":"plan_judged"' "$name/events.ndjson" && break
			sleep 0.05
		done
	fi
	count "$name"
	"$heddle" status "$name" | tail -n "$n" >"$name.rows"
	map=$("$heddle" status "$name" --json | grep -o '"virtual_nodes":[0-9]*' | cut -d: -f2 |
		tail -n +2 | paste -sd/)
	predicted=$("$heddle" status "$name" --json | grep -o '"predicted_ms":[0-9.]*' | cut -d: -f2)
	echo "$name  $(cat "$name.now") ms a step, virtual nodes $map, predicted ${predicted} ms"
	grep -o '"text":".*' "$name/events.ndjson" | grep 'virtual nodes\|the one before took' |
		cut -c9- || true
	[ -z "${HD_UNEVEN_ROWS:-}" ] || {
		cat "$name.rows"
		tail -n "$steps" "$name/metrics.ndjson" | grep -o '"t":[0-9.]*\|_ms":[0-9.]*' | paste -sd' '
	}
	end "$name"
}
best() # two runs that know nothing of each other, counted over the same time
{
	begin other 1 false
	slowed other
	begin beside 1 false
	local from last
	from=$(step other)
	count beside
	last=$(step other)
	for _ in 1 2; do [ $((last - from)) -ge 4 ] && break; count beside; last=$(step other); done
	tail -n $((last - from)) other/metrics.ndjson | grep -o '"t":[0-9.]*' | cut -d: -f2 |
		awk 'NR == 1 { a = $1 } { b = $1 } END { printf "%.1f\n", (b - a) * 1000 / (NR - 1) }' \
			>other.now
	cat other.now >>other.ms
	awk -v a="$(cat beside.now)" -v b="$(cat other.now)" 'BEGIN { printf "%.1f\n", a * b / (a + b) }' |
		tee -a best.ms >best.now
	echo "best    $(cat best.now) ms a step: two runs that do not speak, of $(cat beside.now) and $(cat \
		other.now) ms"
	end beside other
}
middle()
{
	sort -g "$1.ms" |
		awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}
what=${HD_UNEVEN_WHAT:-even shared alone best}
for _ in $(seq "$rounds"); do
	for one in $what; do
		case $one in
		even)   measure even 2 false ;;
		shared) measure shared 2 true ;;
		alone)  measure alone 1 false ;;
		best)   best ;;
		esac
	done
done
[ "$what" = "even shared alone best" ] || exit 0
awk -v n="$rounds" -v e="$(middle even)" -v s="$(middle shared)" -v a="$(middle alone)" \
	-v b="$(middle best)" 'BEGIN {
	printf "medians of %d: even %.1f, shared %.1f, alone %.1f, best %.1f ms a step\n", n, e, s, a, b
	printf "shared: %.2f x as fast as even shares, ", e / s
	printf "%.2f x as fast as the fast worker alone; ", a / s
	printf "the best here is %.2f x, of which shares and exchange cost %.1f %%\n", a / b,
		100 * (s - b) / b }'
