#!/bin/bash
# Mean completion time against load: what it is worth to know how fast a job is on which type. The published
# experiment: 36 v100, 36 p100, 36 k80, the published generator, mean over jobs 4000 to 4999, max-min fairness
# blind to types and seeing them, faithful. RATES: jobs an hour of one device each; MULTI: of several devices;
# SEEDS. Prints the tables of docs/results/load.md. Nothing is timed: clusters are simulated; high rates take
# minutes.
set -eu
cd "$(dirname "$0")/.."
heddle=${HEDDLE_BIN:-build/release/heddle} gavel=${HEDDLE_SHARED:?names the folder with data/gavel}/data/gavel
rates=$gavel/throughputs/simulation_throughputs.json
[ -x "$heddle" ] || { echo "no program at $heddle; ./dev build makes it" >&2; exit 2; }
hours() { # hours RATE SEED POLICY MORE: "-" where it does not end within LIMIT seconds
	timeout "${LIMIT:-3600}" "$heddle" sched compare --throughputs "$rates" \
		--generate "rate=$1,seed=$2,first=4000,end=5000$4" \
		--cluster v100:36,p100:36,k80:36 --policy "$3" --faithful --json 2>/dev/null |
			sed -E 's/.*"avg_jct_s":([0-9.e+]+).*/\1/' || echo -
}
table() { # table TITLE MORE RATE...
	local title=$1 more=$2
	shift 2
	printf '\n### %s\n\n| jobs an hour | seed | blind h | aware h | factor |\n|--:|--:|--:|--:|--:|\n' \
		"$title"
	for rate in "$@"; do
		for seed in ${SEEDS:-0}; do
			python3 -c '
import sys
rate, seed, *v = sys.argv[1:]
h = [float(x) / 3600 if x != "-" else None for x in v]
factor = "%.2f" % (h[0] / h[1]) if all(h) else "-"
print("| %s | %s | %s | %s | %s |" % (rate, seed, *("%.1f" % x if x else "-" for x in h), factor))' \
				"$rate" "$seed" "$(hours "$rate" "$seed" max_min_fairness "$more")" \
				"$(hours "$rate" "$seed" max_min_fairness_perf "$more")"
		done
	done
}
# shellcheck disable=SC2086
table 'Jobs of one device' '' ${RATES-0.8 2.4 4 4.8 5.2 5.6 6}
# shellcheck disable=SC2086
[ -z "${MULTI-0.9 1.8 2.4 2.7}" ] || table 'Jobs of one to eight devices' ',multi' ${MULTI-0.9 1.8 2.4 2.7}
