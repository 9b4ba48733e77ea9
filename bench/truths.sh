#!/bin/bash
# Runs with an injected truth: is the right worker named, with the right cause, and none where all is well?
#
#	bench/truths.sh [RUNS]        of each kind (default 10); KINDS="quota io2 ..." chooses
#	FROM=SEED KEEP=FOLDER         the first seed (1); runs are kept
#	AT_ONCE=2                     so many runs side by side: to each of them the other is load
#	JUDGE=FOLDER bench/truths.sh  judges kept runs again, by the program at hand
#
# A job of three workers on this machine, seeded; from some step on one of them
#	paused      is stopped for 0.4 s of each 0.5 s (SIGSTOP, SIGCONT)
#	slow        is stopped for 30 ms and more of each 40 ms, and runs for a third of what it needs
#	quota       has a third of the processor time that it needs (quota of a control group; as root)
#	preemption  has notice that its machine goes, in an hour, and the same quota
#	link        reads and writes each piece of its connections late (failpoints wire.read, wire.write)
#	shaped      has a slow link, by the system: workers have a network namespace each, and the rate of its
#	            link is such that a step's bytes take two steps (tc, both ways; as root)
#	io          reads the rows of each virtual node late (failpoint data.read)
#	disk        reads shards past the page cache, and a control group holds its reads from the disk back:
#	            those of a step take two and a half steps (blkio.throttle, io.max; as root)
#	server      reads shards over HTTP, and the server answers it at a rate, one after another: the rows
#	            of a step take two and a half steps; the others at once
#	healthy     is left alone; the machine is as busy as it is
#	busy        is left alone, beside processes that compute: as many as there are cores, and two more
# A 2 behind the kind: the same with two workers. It is held for 20 steps and a second, of a reader for 130
# steps; then `heddle trace analyze --json` is asked.
#
# What counts as a truth is seen from outside; the recording has no part in it. What is injected is relative
# to what the worker needed before (processor time, bytes sent, bytes read, the time of a step), and doubled
# until steps take twice what they took: what lies ready at a reader goes first. It is constant over the steps
# that are judged, then withdrawn; these steps take 1.5 times what those before and those after take,
# whichever is more. Else it held nothing back, or the machine's load changed: that is counted (`not`) and
# printed with what was said, but not judged.
#
# Needs a build with failpoints (HEDDLE_BIN, default: build/debug/heddle). Prints a line a run to stderr and
# the table to stdout. Kinds take turns, so that each meets the same machine.
set -u
cd "$(dirname "$0")/.." || exit 1
export HEDDLE_BIN=${HEDDLE_BIN:-$PWD/build/debug/heddle} NO_COLOR=1
RUNS=${1:-10} FROM=${FROM:-1}
KINDS=${KINDS:-paused quota slow link shaped io disk server preemption healthy busy paused2 quota2 slow2 io2
	disk2 healthy2 busy2}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
kept=${KEEP:-$work}

# one ROW SEED: its line
one()
{
	local dir=$3/$1-$2 got
	got=$(timeout 400 python3 bench/truths.py "$1" "$2" "$dir" 2>"$dir.said") || got="$1 $2 failed"
	[[ "$got" != *failed ]] || got="$got: $(tail -n 1 "$dir.said")"
	got="$got; load $(cut -d ' ' -f 1 /proc/loadavg)"
	echo "$got" >&2
	echo "$got"
	[ "$4" ] || rm -rf "$dir"
	rm -f "$dir.said"
}
export -f one
if [ -n "${JUDGE:-}" ]; then
	for dir in "$JUDGE"/*/; do
		name=$(basename "$dir")
		python3 bench/truths.py "${name%-*}" "${name##*-}" "$dir" again
	done >"$work/lines"
else
	mkdir -p "$kept"
	for ((seed = FROM; seed < FROM + RUNS; seed++)); do
		for row in $KINDS; do echo "$row $seed"; done
	done | xargs -P "${AT_ONCE:-2}" -I{} bash -c "one {} '$kept' '${KEEP:-}'" >"$work/lines"
fi
printf '%-11s %5s %7s %7s %6s %7s %5s %7s\n' truth runs worker cause none wrong not failed
awk '{
	row = $1; sub(":", "", $3)
	if (!(row in seen)) { seen[row] = 1; order[++n] = row }
	if ($3 ~ /^failed/) failed[row]++
	else if ($3 == "not") not[row]++
	else { runs[row]++; if ($3 == "right") { worker[row]++; cause[row]++ }
		else if ($3 == "worker") worker[row]++
		else if ($3 == "none") none[row]++
		else wrong[row]++ }
}
function line(row) {
	printf "%-11s %5d %7d %7d %6d %7d %5d %7d\n", row, runs[row], worker[row], cause[row], none[row],
		wrong[row], not[row], failed[row]
}
function add(to, row) {
	runs[to] += runs[row]; worker[to] += worker[row]; cause[to] += cause[row]; none[to] += none[row]
	wrong[to] += wrong[row]; not[to] += not[row]; failed[to] += failed[row]
}
END {
	for (i = 1; i <= n; i++)
		if (order[i] !~ /^(healthy|busy)/) { line(order[i]); add("disturbed", order[i]) }
	print ""; line("disturbed"); print ""
	for (i = 1; i <= n; i++)
		if (order[i] ~ /^(healthy|busy)/) { line(order[i]); add("all healthy", order[i]) }
	print ""; line("all healthy")
}' "$work/lines"
