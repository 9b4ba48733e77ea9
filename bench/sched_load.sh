#!/bin/bash
# Mean completion time against load: what it is worth to know how fast a job is on which type. Policies blind to types and those that see them,
# faithful, beside ours (exact, switching charged). Prints the table of docs/results/load.md. Nothing is timed: clusters are simulated.
set -eu
cd "$(dirname "$0")/.."
heddle=${HEDDLE_BIN:-build/release/heddle} rates=${HEDDLE_SHARED:?names the folder with data/gavel}/data/gavel/throughputs/simulation_throughputs.json
[ -x "$heddle" ] || { echo "no program at $heddle; ./dev build makes it" >&2; exit 2; }
mean() { # mean RATE POLICY OPTIONS...
	local rate=$1 policy=$2
	shift 2
	timeout "${LIMIT:-300}" "$heddle" sched compare --generate "rate=$rate,seed=0,first=200,end=400" --throughputs "$rates" --cluster v100:12,p100:12,k80:12 \
		--policy "$policy" "$@" --json 2>/dev/null | sed -E 's/.*"avg_jct_s":([0-9.e+]+).*/\1/' || true
}
echo '| jobs an hour | max-min blind h | max-min h | factor | ftf blind h | ftf h | factor | fifo blind h | fifo h | factor | heddle h |'
echo '|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|'
for rate in ${RATES:-0.4 0.8 1.2 1.6 2 2.2 2.4}; do
	row="$rate"
	for pair in max_min_fairness:max_min_fairness_perf finish_time_fairness:finish_time_fairness_perf fifo:fifo_perf; do
		row="$row $(mean "$rate" "${pair%:*}" --faithful) $(mean "$rate" "${pair#*:}" --faithful)"
	done
	echo "$row $(mean "$rate" heddle)" | python3 -c '
r, *v = input().split()
h = [float(x) / 3600 for x in v]
cells = [r] + [c for k in (0, 2, 4) for c in ("%.1f" % h[k], "%.1f" % h[k + 1], "%.2f" % (h[k] / h[k + 1]))] + ["%.1f" % h[6]]
print("| " + " | ".join(cells) + " |")'
done
