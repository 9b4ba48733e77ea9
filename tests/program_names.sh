#!/bin/bash
# What ps and top call the processes of a run and of a scheduler; what they were started with is still found.
. "$(dirname "$0")/program.sh"
write_jobs 1000000
sed -i '/^checkpoint: /d' mlp.yaml
cat >>mlp.yaml <<'END'
checkpoint: {every: 100000 steps, keep: 2}
eval: {every: 0}
workers: {detect: 500 ms, pace: 2 ms}
END
[ -e /proc/sys/kernel/ns_last_pid ] || {
	echo "skip: this kernel has no CONFIG_CHECKPOINT_RESTORE: it moves no arguments"
	exit 77
}
# WORKER,PID
members()
{
	heddle status "$1" --json 2>/dev/null | grep -o '"worker":[0-9]*,"state":"[a-z]*","pid":[1-9][0-9]*' |
		sed 's/[^0-9,]//g; s/,,/,/'
}
has_members() { [ "$(members "$1" | wc -l)" -eq "$2" ]; }
line() { tr '\0' ' ' <"/proc/$1/cmdline"; }
named()
{
	local name=$2
	await line_begins "$1" "$name" || failed "process $1 is '$(line "$1")', not '$name'"
}
line_begins() { [[ "$(line "$1")" == "$2 "* ]]; }
briefly() { same "$(cat "/proc/$1/comm")" "$2" "short name of process $1"; }
nobody_of() { ! pgrep -f -- "--join $1" >/dev/null && ! pgrep -f -- "--job $1" >/dev/null; }
crew()          # RUN HOW-MANY: each worker is named by the number that the run gives it
{
	local member
	await has_members "$1" "$2" || failed "$1 has not $2 workers: $(members "$1")"
	for member in $(members "$1"); do
		named "${member#*,}" "heddle: worker ${member%,*} of $1"
		briefly "${member#*,}" "heddle worker ${member%,*}"
	done
}

"$HEDDLE_BIN" run mlp.yaml --out named --workers 2 --devices 1 -q 2>log &
run=$!
reach named 20
named $run "heddle: coordinator of named"
briefly $run "heddle coord"
crew named 2
[ "$(members named | cut -d, -f1 | sort -u | wc -l)" = 2 ] || failed "two workers have one number"
if command -v ps >/dev/null; then
	ps -o args= -p $run |
		grep -q '^heddle: coordinator of named  *[^ ]*heddle run mlp.yaml --out named ' ||
		failed "ps shows $(ps -o args= -p $run)"
fi
passed "ps names coordinator and workers"

# searched by what they were started with, and by name
same "$(pgrep -f -- '--join named --devices 1' | sort | xargs)" \
	"$(members named | cut -d, -f2 | sort | xargs)" \
	"workers found by their arguments, and those there are"
same "$(pgrep -f "^heddle: coordinator of named")" $run "the coordinator found by its name"
same "$(pgrep -f 'run mlp.yaml --out named --workers')" $run "the coordinator found by its arguments"
same "$(pgrep -f '^heddle: worker [0-9]+ of named ' | sort | xargs)" \
	"$(members named | cut -d, -f2 | sort | xargs)" "workers found by name"
grep -qz "^NO_COLOR=1$" "/proc/$run/environ" || failed "the coordinator's environment is no longer to be read"
for member in $(members named); do
	grep -qz "^NO_COLOR=1$" "/proc/${member#*,}/environ" ||
		failed "the environment of worker ${member%,*} is no longer to be read"
done
passed "arguments and environment are found as before"

# more workers, one that joins by hand in a session of its own, and whoever takes over
expect 0 heddle scale named 3
crew named 3
setsid "$HEDDLE_BIN" worker --join named --devices 1 -q 2>by-hand &
crew named 4
kill -9 $run
wait $run 2>/dev/null
new_coordinator() { pgrep -f '^heddle: coordinator of .*serve --job named' >new; }
await new_coordinator || failed "no process of that name took over"
named "$(head -n 1 new)" "heddle: coordinator of named"
await answers_now named || failed "the coordinator that took over does not answer"
expect 0 heddle stop named
await nobody_of named || failed "processes stay behind"
passed "newcomers and coordinators that take over have their names"

# resumed, without the terminal; then alone
expect 0 heddle resume named --workers 2 --devices 1 --detach --json
pid=$(number pid)
reach named 1
named "$pid" "heddle: coordinator of named"
crew named 2
expect 0 heddle stop named
await nobody_of named || failed "processes stay behind"
"$HEDDLE_BIN" resume named --devices 1 -q 2>log &
run=$!
named $run "heddle: run of named"
kill -TERM $run
wait $run
passed "a run that is resumed or detached has its names"

# a path of 300 bytes
long=$(printf 'd%.0s' {1..140})/$(printf 'e%.0s' {1..160})
mkdir -p "${long%/*}"
"$HEDDLE_BIN" run mlp.yaml --out "$long" --devices 1 -q 2>log &
run=$!
named $run "heddle: run of $long"
kill -TERM $run
wait $run
passed "a long path stands there whole"

# a scheduler
"$HEDDLE_BIN" serve --dir plan --pool cpu:2 --http 127.0.0.1:0 2>log &
run=$!
http() { ! kill -0 $run 2>/dev/null || grep -q "^>> http" log; }
await http && kill -0 $run 2>/dev/null || failed "the scheduler does not listen: $(cat log)"
port=$(grep -o 'http://127.0.0.1:[0-9]*' log | cut -d: -f3)
named $run "heddle: scheduler of $PWD/plan on port $port"
briefly $run "heddle sched"
kill -TERM $run
wait $run
passed "a scheduler is named with its port"
