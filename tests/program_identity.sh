#!/bin/bash
# What a run was begun with is what it goes on with: whoever joins or takes over proves its data, wherever it
# comes from.
. "$(dirname "$0")/program.sh"

rows()          # OTHER: that much is added to one feature of some rows
{
	awk -v other="$1" 'BEGIN {
		print "a,b,c,y"
		for (i = 0; i < 400; i++)
			printf "%.3f,%.3f,%.3f,%d\n", (i * 37 % 101) / 100, (i * 53 % 97) / 96,
				(i + (i % 100 == 50 ? other : 0)) % 89 / 88, i % 3
	}'
}
rows 0 >rows.csv
rows 5 >other.csv                     # one row of a hundred differs, no size
rows 0 >old.csv
cat >csv.yaml <<END
job: {name: csv, seed: 3, steps: 1000000}
model: {use: "builtin:mlp", args: {input: [3], hidden: [64], classes: 3}}
data: {kind: csv, path: rows.csv}
batch: {global: 120, virtual_nodes: 12}
checkpoint: {every: 500 steps, keep: 2}
trace: {digest: 1}
eval: {every: 0}
workers: {detect: 500 ms}
END
same "$(stat -c %s rows.csv)" "$(stat -c %s other.csv)" "sizes of the two files"
workers_of()
{
	heddle status "$1" --json 2>/dev/null | grep -o '"workers":\[.*' | grep -o '"pid":[1-9][0-9]*' |
		cut -d: -f2
}
replace() { cp "$1" rows.new && mv rows.new rows.csv; }
hand_said() { grep -qs -- "$2" "$1"/log/hand-*.log; }

# a run is stopped once it has shown what it is for: one device comes to the same bits with the old data
as_twin()
{
	local at=$((10#$(ls "$1/ckpt" | tail -n 1 | cut -d- -f2)))
	replace old.csv
	expect 0 heddle run csv.yaml --out "$1-twin" --devices 1 --steps $at -q
	expect 0 heddle ckpt diff "$1" "$1-twin"
	says IDENTICAL
}

# a file takes its place while the run goes on; then a worker is killed
"$HEDDLE_BIN" run csv.yaml --out changed --workers 2 --devices 1 -s workers.pace='2 ms' -q 2>log &
run=$!
reach changed 30
replace other.csv
kill -9 "$(workers_of changed | tail -n 1)"
await hand_said changed \
	'other data than the run began with: rows.csv has as many bytes and other content' ||
	failed "a worker with other data was not refused"
expect 0 heddle stop changed
status=0
wait $run || status=$?
same $status 75 "exit code of changed"
as_twin changed
passed "a new local worker with other data is refused; those with the run's own go on"

# the next coordinator reads no sample: it goes on for workers that have the old data
"$HEDDLE_BIN" run csv.yaml --out taken --workers 2 --devices 1 -s workers.pace='2 ms' -q 2>log &
run=$!
reach taken 30
replace other.csv
kill -9 $run
wait $run 2>/dev/null
await grep -q '"kind":"warning".*rows.csv has as many bytes and other content' taken/events.ndjson ||
	failed "the coordinator that followed does not say it"
reach taken "$(($(step taken) + 30))"
expect 0 heddle stop taken
await not answers_now taken || failed "taken goes on"
as_twin taken
passed "a coordinator that takes over goes on with the run's data"

# what belongs to the identity of a run is asked of a local worker as of one that comes from elsewhere
"$HEDDLE_BIN" run csv.yaml --out seed --workers 1 --devices 1 -s workers.pace='2 ms' -q 2>log &
run=$!
reach seed 10
expect 2 heddle worker --join seed --devices 1 -s job.seed=4 -q
says 'what fixes the result differs from the job that the run began with'
passed "a worker with another job is refused in a sentence"

# files that are written to: what was computed since is not kept, by several and by one
written_to()         # run, process: exit 5, whoever finds it first; then refused until the old data are back
{
	local status=0
	dd if=other.csv of=rows.csv conv=notrunc 2>/dev/null
	wait "$2" || status=$?
	same $status 5 "exit code of $1, whose data were written to"
	grep -q 'rows.csv was written to while it is in use' log ||
		failed "$1 does not say what was written to: $(cat log)"
	expect 5 heddle resume "$1" -q
	says 'other data than the run began with: rows.csv has as many bytes and other content'
	replace old.csv
}
written_to seed $run
"$HEDDLE_BIN" run csv.yaml --out one --devices 1 -s 'checkpoint.every=50 steps' -q 2>log &
run=$!
# older ones go again
saved()
{
	local newest
	newest=$(ls one/ckpt 2>/dev/null | grep "^step-" | tail -n 1)
	[ "$newest" ] && [ $((10#${newest#step-})) -ge 100 ]
}
await saved || failed "one did not come to step 100"
written_to one $run
at=$((10#$(ls one/ckpt | tail -n 1 | cut -d- -f2) + 10))
expect 0 heddle resume one --devices 1 --steps $at -q
expect 0 heddle run csv.yaml --out one-twin --devices 1 --steps $at -q
expect 0 heddle ckpt diff one one-twin
says IDENTICAL
passed "nothing is kept that was computed of files that were written to"
