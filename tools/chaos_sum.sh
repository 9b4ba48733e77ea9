#!/bin/bash
# What came of the runs of tools/chaos.sh in a folder, all together, as a page of docs/results.
#
#   tools/chaos_sum.sh FOLDER
#
# Fails if a run did not end with the bits of one device or did not take each sample once in each data epoch,
# if no process was killed at some place, or with fewer than HD_CHAOS_LEAST kills (1,000) or 10 steps a kill
# of these.
set -u
cd "$1" || exit 1
bad=0 runs=0
for run in run-*.json; do
	runs=$((runs + 1))
	grep -qE '"identical":true.*"exact":(true|null)' "$run" || {
		bad=$((bad + 1))
		echo "${run%.json}: $(tail -n 1 "${run%.json}.err")" >&2
	}
done
processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
echo "Made by \`tools/chaos.sh\` on $(date -u +%F) with $(cat version 2>/dev/null)," \
	"$(nproc) cores of $processor${HD_CHAOS_NOTE:+, $HD_CHAOS_NOTE}."
# all numbers of the runs, by name; those of places have a dot, and stand behind those of phases
grep -ho '"[a-z.]*":[0-9]*' run-*.json |
	awk -F '[":]+' -v runs="$runs" -v bad="$bad" -v least="${HD_CHAOS_LEAST:-1000}" '
	function row(what, text) { print "| " what " | " text " |" }
	function pair(one, other) { return n[one] + 0 "; " n[other] + 0 }
	{ n[$2] += $3; if ($2 ~ /[.]/ && !($2 in seen)) { seen[$2] = 1; place[++places] = $2 } }
	END {
		print "\n| what | how often |\n|---|--:|"
		row("runs; bits of one device, and each sample once in each data epoch", runs "; " runs - bad)
		row("steps", n["steps"] + 0)
		row("kills", n["kills"] + 0)
		row("of these at a named place; of the coordinator at any instant",
			pair("points", "coordinators"))
		row("memberships; all died, and the run was resumed", pair("membership", "resumed"))
		row("pauses, slowed, links, disks, sizes",
			n["pauses"] + 0 ", " n["slows"] + 0 ", " n["nets"] + 0 ", " n["disks"] + 0 ", " \
			n["scales"] + 0)
		row("data epochs; virtual nodes computed again", pair("epochs", "again"))
		print "\n| place | killed there |\n|---|--:|"
		for (i = 1; i <= places; i++) {
			row("`" place[i] "`", n[place[i]] + 0)
			empty += !n[place[i]]
		}
		if (empty || !places) printf "\nNo process was killed at %d places.\n", empty
		few = n["kills"] < least || n["steps"] < 10 * least
		if (few) printf "\nToo few: %d kills over %d steps are wanted.\n", least, 10 * least
		exit bad || empty || !places || few
	}'
