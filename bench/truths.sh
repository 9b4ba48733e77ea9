#!/bin/bash
# Runs with an injected truth: is the right worker named, with the right cause, and none where all is well?
#
#	bench/truths.sh [RUNS]        of each kind (default 10)
#
# A job of three workers on this machine, seeded; from step 5 on one of them
#	paused    is stopped for 0.4 s of each 0.5 s (SIGSTOP, SIGCONT)
#	compute   is stopped for 30 ms of each 40 ms, as a quota of a quarter would have it
#	link      reads and writes each piece of its connections 3 ms late (failpoints wire.read, wire.write)
#	io        reads the rows of each virtual node 60 ms late (failpoint data.read)
#	healthy   is left alone; the machine is as busy as it is
# and `heddle trace analyze RUN --steps 20 --json` is asked. Needs a build with failpoints (HEDDLE_BIN,
# default: build/debug/heddle). Prints a line a run to stderr and the table to stdout.
set -u
cd "$(dirname "$0")/.." || exit 1
HEDDLE_BIN=${HEDDLE_BIN:-$PWD/build/debug/heddle}
RUNS=${1:-10}
KINDS=${KINDS:-paused compute link io healthy}
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
export NO_COLOR=1

nap() { read -r -t "$1" <> <(:); }

job()
{
	cat <<END
job: {name: truth, seed: $1, steps: $2}
model: {use: "builtin:mlp", args: {input: [1, 28, 28], hidden: [512, 256], classes: 10}}
data: {kind: synthetic, count: 6000}
batch: {global: ${BATCH:-768}, virtual_nodes: 12}
optim: {kind: adamw, lr: 1e-3}
checkpoint: {every: 100000 steps, keep: 2}
elastic: {straggler: {act: false}}
END
}

# pid of worker $2 of run $1 once step 5 is committed
worker_of()
{
	local i
	for ((i = 0; i < 400; i++)); do
		"$HEDDLE_BIN" status "$1" --json 2>/dev/null | python3 -c "
import json, sys
try:
    s = json.load(sys.stdin)
except ValueError:
    sys.exit(1)
pids = [w['pid'] for w in s['workers'] if w['id'] == $2]
if s['step'] < 5 or not pids:
    sys.exit(1)
print(pids[0])" 2>/dev/null && return
		nap 0.05
	done
	return 1
}

# stops process $1 for $2 s, lets it go for $3 s, until run $4 has committed all its steps; on time even where
# the machine is busy, if the user may
duty()
{
	python3 - "$@" <<'END'
import os, signal, sys, time
pid, stop, go, run = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
except OSError:
    pass
end = time.time() + 60
try:
    while time.time() < end and "\nreport" not in open(run + ".log").read():
        os.kill(pid, signal.SIGSTOP)
        time.sleep(stop)
        os.kill(pid, signal.SIGCONT)
        time.sleep(go)
except OSError:
    pass
END
}

order() { mkdir -p "$1/chaos" && echo "$3" >"$1/order" && mv "$1/order" "$1/chaos/$2"; }

# kind, seed: prints "named worker cause" or "none"
truth()
{
	local kind=$1 seed=$2 w=$(($2 % 3)) run pid dir="$1-$2"
	job "$seed" "${STEPS:-60}" >"$dir.yaml"
	timeout 120 "$HEDDLE_BIN" run "$dir.yaml" --out "$dir" --workers 3 --devices 1 --threads 1 \
		>"$dir.log" 2>&1 &
	run=$!
	if pid=$(worker_of "$dir" "$w"); then
		case $kind in
		paused) duty "$pid" 0.4 0.1 "$dir" ;;
		compute) duty "$pid" 0.03 0.01 "$dir" ;;
		link) order "$dir" "$pid" "wire.read:delay=3;wire.write:delay=3" ;;
		io) order "$dir" "$pid" "data.read:delay=60" ;;
		esac
	fi
	wait $run || { echo "failed"; tail -n 2 "$dir.log" >&2; return; }
	"$HEDDLE_BIN" trace analyze "$dir" --steps 20 --json >"$dir.json" && python3 - "$dir.json" <<'END'
import json, sys
s = json.load(open(sys.argv[1]))["stragglers"]
print("named %d %s" % (s[0]["worker"], s[0]["cause"]) if s else "none")
END
	[ -n "${KEEP:-}" ] && cp -r "$dir" "$KEEP/"
	rm -rf "$dir"
}

printf '%-8s %5s %7s %7s %6s\n' truth runs worker cause none
for kind in $KINDS; do
	runs=0 worker=0 cause=0 none=0
	for ((seed = 1; seed <= RUNS; seed++)); do
		got=$(truth "$kind" "$seed")
		echo "$kind of worker $((seed % 3)), seed $seed: $got" >&2
		[ "$got" = failed ] && continue
		runs=$((runs + 1))
		case $got in
		"named $((seed % 3)) $kind") worker=$((worker + 1)) cause=$((cause + 1)) ;;
		"named $((seed % 3)) "*) worker=$((worker + 1)) ;;
		none) none=$((none + 1)) ;;
		esac
	done
	printf '%-8s %5d %7d %7d %6d\n' "$kind" $runs $worker $cause $none
done
