#!/bin/bash
# What came of the runs of tools/chaos.sh in a folder, all together, as a page of docs/results.
#
#   tools/chaos_sum.sh FOLDER
#
# Fails if a run did not end with the bits of one device or did not take each sample once in each data epoch,
# if no process was killed at some place, or with fewer than HD_CHAOS_LEAST kills (1,000) or 10 steps a kill of
# these.
set -u
cd "$1" || exit 1
bad=0 runs=0
for run in run-*.json; do
	runs=$((runs + 1))
	grep -q '"identical":true.*"exact":true' "$run" || {
		bad=$((bad + 1))
		echo "${run%.json}: $(tail -n 1 "${run%.json}.err")" >&2
	}
done
echo "Made by \`tools/chaos.sh\` on $(date -u +%F) with $(cat version 2>/dev/null), $(nproc) cores of $(sed \
	-n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)${HD_CHAOS_NOTE:+, $HD_CHAOS_NOTE}."
# all numbers of the runs, by name; those of places have a dot, and stand behind those of phases
grep -ho '"[a-z.]*":[0-9]*' run-*.json | awk -F '[":]+' -v runs="$runs" -v bad="$bad" -v least="${HD_CHAOS_LEAST:-1000}" '
	{ n[$2] += $3; if ($2 ~ /[.]/ && !($2 in seen)) { seen[$2] = 1; place[++places] = $2 } }
	END {
		print "\n| what | how often |\n|---|--:|"
		printf "| runs; bits of one device, and each sample once in each data epoch | %d; %d |\n| steps | %d |\n| kills | %d |\n", runs, runs - bad, n["steps"], n["kills"]
		printf "| of these at a named place; of the coordinator at any instant | %d; %d |\n", n["points"], n["coordinators"]
		printf "| memberships; all died, and the run was resumed | %d; %d |\n", n["membership"], n["resumed"]
		printf "| pauses, slowed, links, disks, sizes | %d, %d, %d, %d, %d |\n", n["pauses"], n["slows"], n["nets"], n["disks"], n["scales"]
		printf "| data epochs; virtual nodes computed again | %d; %d |\n\n| place | killed there |\n|---|--:|\n", n["epochs"], n["again"]
		for (i = 1; i <= places; i++) { printf "| `%s` | %d |\n", place[i], n[place[i]]; empty += !n[place[i]] }
		if (empty || !places) printf "\nNobody was killed at %d places.\n", empty
		if (n["kills"] < least || n["steps"] < 10 * least) printf "\nToo few: %d kills over %d steps are wanted.\n", least, 10 * least
		exit bad || empty || !places || n["kills"] < least || n["steps"] < 10 * least
	}'
