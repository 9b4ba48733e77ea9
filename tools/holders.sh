#!/bin/bash
# Was each return to a checkpoint right? Read from outside, from what a run of pipelines leaves: its events,
# and the plan of each membership (plan/NNNN.plan), which names the workers that run a stage. A return is
# right if all workers of some stage were lost.
#
#   tools/holders.sh RUN
#
# A line for each return; exit 1 if one of them was wrong: each stage had a worker that was there. One that
# joined with the last change counts as soon as a step has begun after it. Where the plan is not there, which
# its writer may have taken along, nothing is said ("unknown"). A bucket in which two stages meet is held by
# the workers of both: that all workers of one of them are lost says too little then.
set -eu
cd "$1"
awk '
function field(name, pattern,    at) {
	if (!match($0, "\"" name "\":" pattern)) return ""
	at = length(name) + 4
	return substr($0, RSTART + at - 1, RLENGTH - at + 1)
}
# workers of each stage of the plan of that membership, by the ranks that run F of it
function read_plan(n,    file, line, part, k, rank, at, member, of, i, s, w) {
	file = sprintf("plan/%04d.plan", n)
	nstages = 0
	while ((getline line < file) > 0) {
		if (line ~ /^cause/ && match(line, /workers [0-9 ]+/))
			split(substr(line, RSTART + 8, RLENGTH - 8), member, " ")
		if (line ~ /^stages /) {
			nstages = substr(line, 8) + 0
			for (s = 0; s < nstages; s++) stage[s] = ""
		}
		if (line ~ /^workers /) {
			k = split(substr(line, 9), part, " ")
			for (i = 1; i <= k; i++) {
				split(part[i], rank, ":")
				of[rank[1]] = member[rank[2] + 1]
			}
		}
		if (line ~ /^[0-9]+: /) {
			k = split(line, part, " ")
			split(part[1], rank, ":")
			for (i = 2; i <= k; i++) {
				if (part[i] !~ /^F[0-9]+[.]/) continue
				split(substr(part[i], 2), at, ".")
				s = at[1] + 0
				w = " " of[rank[1]]
				if (!index(stage[s] " ", w " ")) stage[s] = stage[s] w
			}
		}
	}
	close(file)
	return nstages
}
function judge(    s, i, k, w, alive, bare) {
	if (!read_plan(membership)) {
		print "step " step ": unknown, plan " membership " is not there"
		return
	}
	for (s = 0; s < nstages; s++) {
		k = split(stage[s], w, " ")
		alive = 0
		for (i = 1; i <= k; i++) alive += !(w[i] in lost) && !(w[i] in pupil)
		if (!alive) bare = bare " stage " s " (of" stage[s] ")"
	}
	print "step " step ", membership " membership ": " \
		(bare == "" ? "WRONG, each stage had a holder" : "lost" bare)
	wrong += bare == ""
	# those that are left have other names from here on
	for (s = 0; s < nstages; s++) {
		k = split(stage[s], w, " ")
		for (i = 1; i <= k; i++) lost[w[i]] = 1
	}
}
{
	kind = field("kind", "\"[a-z_]*")
	sub(/^"/, "", kind)
	n = field("membership", "[0-9]+") + 0
	if (n) membership = n
	step = field("step", "[0-9]+") + 0
	worker = field("worker", "[0-9]+")
}
kind == "moves" {
	delete pupil
	match($0, /to workers [0-9 ]+/)
	many = split(substr($0, RSTART + 11, RLENGTH - 11), w, " ")
	for (i = 1; i <= many; i++) pupil[w[i]] = 1
	moved = step
}
step > moved { delete pupil }
(kind == "lost" || kind == "process_ended" || kind == "left") && worker != "" { lost[worker] = 1 }
kind == "restore" {
	judge()
	delete pupil
	moved = 0
}
END { exit wrong > 0 }' events.ndjson
