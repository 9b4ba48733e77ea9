#!/bin/bash
# The cluster scheduler: seconds of one decision, of a year of 100,000 jobs, and of the published rules beside a plain Python writing of them
# (bench/sched_peer.py) on the same trace. Prints the tables of docs/results/sched.md. Rates are in $HEDDLE_SHARED/data/gavel.
#	bench/sched.sh [decisions] [year] [peer]
set -eu
cd "$(dirname "$0")/.."
heddle=${HEDDLE_BIN:-build/release/heddle}
[ -x "$heddle" ] || { echo "no program at $heddle; ./dev build makes it" >&2; exit 2; }
rates=${HEDDLE_SHARED:?the published rates are in HEDDLE_SHARED}/data/gavel/throughputs/simulation_throughputs.json
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
what=${*:-decisions year peer}

cpu_seconds() { python3 - "$@" <<'P'
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=open("/dev/null", "w"))
u = resource.getrusage(resource.RUSAGE_CHILDREN)
print("%.2f" % (u.ru_utime + u.ru_stime))
P
}

case " $what " in *" decisions "*)
	echo '| case | policy | jobs | types | seconds | programs | pivots | |'
	echo '|---|---|--:|--:|--:|--:|--:|---|'
	"$heddle" sched bench --repeat "${REPEAT:-3}" --json | python3 -c '
import json, sys
for line in sys.stdin:
    r = json.loads(line)
    note = "gave up: equal parts" if r["gave_up"] else "least share %.4f of the whole" % r["of_whole"] if "of_whole" in r else ""
    print("| %s | `%s` | %d | %d | %.3f | %d | %d | %s |" % (r["case"], r["policy"], r["jobs"], r["types"], r["seconds"], r["programs"], r["iterations"], note))'
esac
case " $what " in *" year "*)
	"$heddle" sched gen --count 100000 --seed 1 >"$work/year.trace"
	head -n 50000 "$work/year.trace" >"$work/half.trace"
	echo '| policy | jobs | CPU s |'
	echo '|---|--:|--:|'
	for policy in fifo isolated; do
		for trace in half year; do
			echo "| \`$policy\` | $(wc -l <"$work/$trace.trace") | $(cpu_seconds "$heddle" sched simulate --trace "$work/$trace.trace" --cluster gpu:64 --policy $policy --round 360 --json) |"
		done
	done
esac
case " $what " in *" peer "*)
	echo '| jobs | devices | Python CPU s | heddle CPU s | times | equal |'
	echo '|--:|--:|--:|--:|--:|---|'
	for jobs in 1000 3000; do
		"$heddle" sched gen --generate rate=$((jobs / 100)),seed=1,jobs=$jobs,multi --throughputs "$rates" >"$work/p.trace"
		python3 bench/sched_peer.py "$work/p.trace" "$rates" v100:36,p100:36,k80:36 >"$work/peer"
		options="--trace $work/p.trace --throughputs $rates --cluster v100:36,p100:36,k80:36 --policy isolated --faithful --json"
		# shellcheck disable=SC2086
		"$heddle" sched simulate $options >"$work/ours"
		# shellcheck disable=SC2086
		ours=$(cpu_seconds "$heddle" sched simulate $options)
		python3 - "$work" "$jobs" "$ours" <<'P'
import json, sys
work, jobs, ours = sys.argv[1:]
average, makespan, theirs = map(float, open(work + "/peer").read().split())
o = json.load(open(work + "/ours"))
equal = abs(o["avg_jct_s"] / average - 1) < 1e-9 and abs(o["makespan_s"] / makespan - 1) < 1e-9
print("| %s | 108 | %.2f | %s | %.0f | %s |" % (jobs, theirs, ours, theirs / max(float(ours), 0.005), "to 1e-9" if equal else "NO"))
P
	done
esac
