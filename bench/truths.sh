#!/bin/bash
# Runs with an injected truth: is the right worker named, with the right cause, and none where all is well?
#
#	bench/truths.sh [RUNS]        of each kind (default 10); KINDS="quota io2 ..." chooses
#
# A job of three workers on this machine, seeded; from some step on one of them
#	paused      is stopped for 0.4 s of each 0.5 s (SIGSTOP, SIGCONT)
#	quota       has a twentieth of a processor (quota of a control group; as root)
#	slow        is stopped for 30 ms of each 40 ms
#	link        reads and writes each piece of its connections late (failpoints wire.read, wire.write)
#	io          reads the rows of each virtual node late (failpoint data.read)
#	server      reads shards over HTTP, and the server answers it late, the others at once
#	preemption  has notice that its machine goes, in an hour, and the same quota
#	healthy     is left alone; the machine is as busy as it is
# Late is by as much as makes a step twice as long and more. A 2 behind the kind: the same with two workers.
# Of the last 20 steps `heddle trace analyze --json` is asked.
# Needs a build with failpoints (HEDDLE_BIN, default: build/debug/heddle). Prints a line a run to stderr and
# the table to stdout. Kinds take turns, so that each meets the same machine. KEEP=FOLDER keeps the runs.
set -u
cd "$(dirname "$0")/.." || exit 1
export HEDDLE_BIN=${HEDDLE_BIN:-$PWD/build/debug/heddle} NO_COLOR=1
RUNS=${1:-10}
KINDS=${KINDS:-paused quota slow link io server preemption healthy paused2 quota2 slow2 io2 healthy2}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

declare -A cause_of=([quota]=compute [slow]=compute [server]=io) runs worker cause none failed
for row in $KINDS; do runs[$row]=0 worker[$row]=0 cause[$row]=0 none[$row]=0 failed[$row]=0; done
for ((seed = ${FROM:-1}; seed < ${FROM:-1} + RUNS; seed++)); do
	for row in $KINDS; do
		kind=${row%2} nworkers=3
		[ "$row" != "$kind" ] && nworkers=2
		dir=${KEEP:-$work}/$row-$seed
		got=$(timeout 200 python3 bench/truths.py "$kind" "$seed" $nworkers "$dir") || got=failed
		load=$(cut -d' ' -f1 /proc/loadavg)
		echo "$row of worker $((seed % nworkers)), seed $seed, load $load: $got" >&2
		[ -n "${KEEP:-}" ] || rm -rf "$dir"
		[ "$got" = failed ] && { : $((failed[$row]++)); continue; }
		: $((runs[$row]++))
		case $got in
		"named $((seed % nworkers)) ${cause_of[$kind]:-$kind}")
			: $((worker[$row]++)) $((cause[$row]++)) ;;
		"named $((seed % nworkers)) "*) : $((worker[$row]++)) ;;
		none) : $((none[$row]++)) ;;
		esac
	done
done
printf '%-11s %5s %7s %7s %6s %7s\n' truth runs worker cause none failed
for row in $KINDS; do
	printf '%-11s %5d %7d %7d %6d %7d\n' "$row" "${runs[$row]}" "${worker[$row]}" "${cause[$row]}" \
		"${none[$row]}" "${failed[$row]}"
done
