#!/bin/bash
# Every published policy beside ours on the published traces: same simulator, same switching costs (start 30
# s, resize 1, move 20, preempt 5). Prints the tables of docs/results/scheduling.md. Nothing is timed:
# clusters are simulated. Some of the packed programs take minutes; a policy that does not end within LIMIT
# seconds (600) is listed so.
set -eu
cd "$(dirname "$0")/.."
heddle=${HEDDLE_BIN:-build/release/heddle} data=${HEDDLE_SHARED:?names the folder with data/gavel}/data/gavel
[ -x "$heddle" ] || { echo "no program at $heddle; ./dev build makes it" >&2; exit 2; }
published='max_min_fairness las las-packed finish_time_fairness ftf ftf-packed min_total_duration makespan
	makespan-packed max_sum_throughput_perf max_sum_throughput_packed fifo-plain fifo fifo-packed
	gandiva-packed isolated'
ours='sum sum-packed sjf heddle heddle-packed'
curve='max=8,vns=32,resize=1,speedup=1:1.691:2.253:2.815:3.142:3.469:3.796:4.123'
row() { # row NAME POLICY OPTIONS...
	local name=$1 policy=$2 json
	shift 2
	json=$(timeout "${LIMIT:-600}" "$heddle" sched compare "${jobs[@]}" --policy "$policy" "$@" \
		--json 2>/dev/null) || {
		echo "$name - - - - -"
		return
	}
	python3 -c '
import json, sys
r = json.loads(sys.argv[2])[0]
numbers = [r[k] for k in ("avg_jct_s", "median_jct_s", "makespan_s", "productive")]
print(sys.argv[1], *("%.6g" % x for x in numbers + [r["moves"] + r["resizes"]]))' "$name" "$json"
}
table() { # table TRACE RATES CLUSTER
	jobs=(--trace "$data/traces/$1.trace" --throughputs "$data/throughputs/$2_throughputs.json"
		--cluster "$3")
	{
		for p in $published; do row "$p" "$p"; done
		for p in $ours; do row "ours:$p" "$p"; done
		row ours:heddle,elastic heddle --elastic "$curve"
		row ours:heddle,mixed heddle --elastic "$curve,mixed"
		row ours:heddle-packed,mixed heddle-packed --elastic "$curve,mixed"
	} | python3 -c '
import sys
trace, cluster = sys.argv[1:]
rows = [l.split() for l in sys.stdin]
best = [min(float(r[k]) for r in rows if r[k] != "-" and not r[0].startswith("ours:")) for k in (1, 3)]
print("\n### %s on %s\n" % (trace, cluster))
print("| policy | mean JCT h | % | median h | makespan h | % | computing % | moves and resizes |")
print("|---|--:|--:|--:|--:|--:|--:|--:|")
for r in rows:
    name = r[0].replace(",", ", ")
    if name.startswith("ours:"): name = "**%s**" % name[5:]
    if r[1] == "-":
        print("| %s | not within the limit | | | | | | |" % name)
        continue
    jct, median, end, computing, moves = map(float, r[1:])
    print("| %s | %.2f | %+.1f | %.2f | %.2f | %+.1f | %.1f | %d |" % (
        name, jct / 3600, 100 * (jct / best[0] - 1), median / 3600, end / 3600,
        100 * (end / best[1] - 1), 100 * computing, moves))' "$1, $2" "$3"
}
for rates in physical_cluster simulation; do
	for trace in minimize_makespan max_min_fairness; do
		table "$trace" "$rates" v100:8,p100:16,k80:24
	done
done
for trace in artifact_evaluation debug highmem_test medium_test small_test; do
	table "$trace" simulation v100:2,p100:2,k80:2
done
