#!/bin/bash
# Two workers, one of them slowed, with even shares, with shares of its own accord, and the fast one alone; side by side in one call.
#
#	bench/uneven.sh [SLOW [STEPS]]       3 times as slow, 30 steps of each are timed
#
# The second worker is slowed by a CPU quota (a control group, version 2 or 1: root), else by the worker's own --slow, which sleeps
# after computing. Time of a step is wall time between commits (t of metrics.ndjson), mean of the last STEPS.
set -eu
cd "$(dirname "$0")/.."
heddle=${HEDDLE_BIN:-$PWD/build/release/heddle}
[ -x "$heddle" ] || { echo "no program at $heddle; ./dev build makes it" >&2; exit 2; }
slow=${1:-3} steps=${2:-30} job=${HD_UNEVEN_JOB:-} period=${HD_UNEVEN_PERIOD:-20000}
work=$(mktemp -d)
group=
cleanup() { kill $(jobs -p) 2>/dev/null || true; wait; [ -z "$group" ] || rmdir "$group" 2>/dev/null || true; rm -rf "$work"; }
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
		group=/sys/fs/cgroup/heddle-uneven-$$; mkdir "$group" && echo "$((period / slow)) ${period}" >"$group/cpu.max"
	elif [ -d /sys/fs/cgroup/cpu ]; then
		group=/sys/fs/cgroup/cpu/heddle-uneven-$$; mkdir "$group" && echo ${period} >"$group/cpu.cfs_period_us" &&
			echo $((period / slow)) >"$group/cpu.cfs_quota_us"
	else
		return 1
	fi && echo "$1" >"$group/cgroup.procs"
}
step() { cat "$1/metrics.ndjson" 2>/dev/null | wc -l; }
reach() { for _ in $(seq 4000); do [ "$(step "$1")" -ge "$2" ] && return; sleep 0.05; done; echo "$1 did not reach step $2" >&2; exit 1; }
mean() # of the last STEPS steps, ms
{
	tail -n $((steps + 1)) "$1/metrics.ndjson" | grep -o '"t":[0-9.]*' | cut -d: -f2 | awk 'NR == 1 { a = $1 } { b = $1 } END { printf "%.1f", (b - a) * 1000 / (NR - 1) }'
}
measure() # measure NAME WORKERS act: "name ms map"
{
	local name=$1 n=$2 act=$3 last
	"$heddle" run job.yaml --out "$name" --workers "$n" --devices 1 -s elastic.straggler.act="$act" -q >/dev/null 2>"$name.log" &
	reach "$name" 1
	if [ "$n" = 2 ]; then
		pid=$("$heddle" status "$name" --json | grep -o '"pid":[0-9]*' | cut -d: -f2 | tail -n 1)
		quota "$pid" || { echo "no control group for the CPU can be made here" >&2; exit 2; }
	fi
	if [ "$act" = true ]; then
		for _ in $(seq 4000); do grep -q '"kind":"plan_judged"' "$name/events.ndjson" && break; sleep 0.05; done
	fi
	last=$(step "$name")
	reach "$name" $((last + steps + 2))
	"$heddle" status "$name" | tail -n "$n" >"$name.rows"
	map=$("$heddle" status "$name" --json | grep -o '"virtual_nodes":[0-9]*' | cut -d: -f2 | tail -n +2 | paste -sd/)
	predicted=$("$heddle" status "$name" --json | grep -o '"predicted_ms":[0-9.]*' | cut -d: -f2)
	mean "$name" >"$name.ms"
	echo "$name  $(cat "$name.ms") ms a step, virtual nodes $map, predicted ${predicted} ms"
	grep -o '"text":".*' "$name/events.ndjson" | grep 'virtual nodes\|the one before took' | cut -c9- || true
	[ -z "${HD_UNEVEN_ROWS:-}" ] || { cat "$name.rows"; tail -n "$steps" "$name/metrics.ndjson" | grep -o '"t":[0-9.]*\|_ms":[0-9.]*' | paste -sd' '; }
	"$heddle" stop "$name" --now >/dev/null
	wait
	[ -z "$group" ] || { rmdir "$group"; group=; }
}
for what in ${HD_UNEVEN_WHAT:-even shared alone}; do
	case $what in
	even)   measure even 2 false ;;
	shared) measure shared 2 true ;;
	alone)  measure alone 1 false ;;
	esac
done
[ "$(ls ./*.ms | wc -l)" = 3 ] || exit 0
awk -v e="$(cat even.ms)" -v s="$(cat shared.ms)" -v a="$(cat alone.ms)" 'BEGIN { printf "shared: %.2f x as fast as even shares, %.2f x as fast as the fast worker alone\n", e / s, a / s }'
