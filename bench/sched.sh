#!/bin/bash
# The cluster scheduler: seconds of one decision, of a year of 100,000 jobs, and of the published rules beside
# a plain Python writing of them (bench/sched_peer.py) on the same trace. Prints the tables of
# docs/results/sched.md. Rates are in $HEDDLE_SHARED/data/gavel.
#	bench/sched.sh [decisions] [year] [peer] [published]
set -eu
cd "$(dirname "$0")/.."
heddle=${HEDDLE_BIN:-build/release/heddle}
[ -x "$heddle" ] || { echo "no program at $heddle; ./dev build makes it" >&2; exit 2; }
gavel=${HEDDLE_SHARED:?the published rates are in HEDDLE_SHARED}/data/gavel
rates=$gavel/throughputs/simulation_throughputs.json
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
what=${*:-decisions year peer published}

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
    note = ""
    if r["gave_up"]: note = "gave up: equal parts"
    elif "of_whole" in r: note = "least share %.4f of the whole" % r["of_whole"]
    numbers = (r[k] for k in ("case", "policy", "jobs", "types", "seconds", "programs", "iterations"))
    print("| %s | `%s` | %d | %d | %.3f | %d | %d | %s |" % (*numbers, note))'
esac
case " $what " in *" year "*)
	"$heddle" sched gen --count 100000 --seed 1 >"$work/year.trace"
	head -n 50000 "$work/year.trace" >"$work/half.trace"
	echo '| policy | jobs | CPU s |'
	echo '|---|--:|--:|'
	for policy in fifo isolated; do
		for trace in half year; do
			echo \
				"| \`$policy\` | $(wc -l <"$work/$trace.trace") | $(cpu_seconds "$heddle" \
				sched simulate --trace "$work/$trace.trace" --cluster gpu:64 \
				--policy $policy --round 360 --json) |"
		done
	done
esac
case " $what " in *" peer "*)
	# $PEER_PYTHON: a Python with cvxpy and ecos, which the published scheduler solves its programs with
	echo '| policy | jobs | devices | Python CPU s | heddle CPU s | times | average JCT |'
	echo '|---|--:|--:|--:|--:|--:|---|'
	peer() { # peer POLICY JOBS TRACE CLUSTER PYTHON
		local policy=$1 jobs=$2 trace=$3 cluster=$4 python=$5 devices ours
		devices=$(($(echo "$cluster" | sed 's/[a-z0-9]*://g; s/,/+/g')))
		"$python" -W ignore bench/sched_peer.py "$trace" "$rates" "$cluster" "$policy" >"$work/peer"
		options=(--trace "$trace" --throughputs "$rates" --cluster "$cluster" --policy "$policy"
			--faithful --json)
		"$heddle" sched simulate "${options[@]}" >"$work/ours"
		ours=$(cpu_seconds "$heddle" sched simulate "${options[@]}")
		python3 - "$work" "$policy" "$jobs" "$devices" "$ours" <<'P'
import json, sys
work, policy, jobs, devices, ours = sys.argv[1:]
average, makespan, theirs = map(float, open(work + "/peer").read().split())
o = json.load(open(work + "/ours"))
off, end = o["avg_jct_s"] / average - 1, o["makespan_s"] / makespan - 1
equal = "equal to 1e-9" if max(abs(off), abs(end)) < 1e-9 else "%+.1f %%" % (100 * off)
faster = theirs / max(float(ours), 0.005)
print("| `%s` | %s | %s | %.2f | %s | %.0f | %s |" % (policy, jobs, devices, theirs, ours, faster, equal))
P
	}
	for jobs in 1000 3000; do
		"$heddle" sched gen --generate rate=$((jobs / 100)),seed=1,jobs=$jobs,multi \
			--throughputs "$rates" >"$work/p.trace"
		peer isolated $jobs "$work/p.trace" v100:36,p100:36,k80:36 python3
	done
	if [ -n "${PEER_PYTHON:-}" ]; then
		peer max_min_fairness_perf 100 "$gavel/traces/max_min_fairness.trace" \
			v100:8,p100:16,k80:24 "$PEER_PYTHON"
		for jobs in 400 1000; do
			"$heddle" sched gen --generate rate=6,seed=1,jobs=$jobs --throughputs "$rates" \
				>"$work/p.trace"
			peer max_min_fairness_perf $jobs "$work/p.trace" v100:36,p100:36,k80:36 "$PEER_PYTHON"
		done
	else
		echo 'no PEER_PYTHON (with cvxpy and ecos): max_min_fairness_perf is not compared' >&2
	fi
esac
case " $what " in *" published "*)
	# EXPERIMENTS.md of the published repository prints when these two runs began, when they ended and
	# what came out (6 at a time on a cloud machine)
	echo -n '| jobs an hour | jobs | published: seconds | average JCT s |'
	echo ' heddle CPU s | average JCT s | times |'
	echo '|--:|--:|--:|--:|--:|--:|--:|'
	while read -r rate seconds average; do
		options=(--generate "rate=$rate,seed=42,first=4000,end=5000" --throughputs "$rates"
			--cluster v100:36,p100:36,k80:36 --policy allox --faithful --json)
		ours=$(cpu_seconds "$heddle" sched compare "${options[@]}")
		"$heddle" sched compare "${options[@]}" | python3 -c '
import json, sys
rate, seconds, average, ours = sys.argv[1:]
jct, faster = json.load(sys.stdin)[0]["avg_jct_s"], float(seconds) / float(ours)
print("| %s | 5000 | %s | %s | %s | %.6f | %.0f |" % (rate, seconds, average, ours, jct, faster))
' "$rate" "$seconds" "$average" "$ours"
	done <<-END
		0.8 218.1 59770.441018
		0.4 251.9 59492.106756
	END
esac
