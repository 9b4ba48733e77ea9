#!/bin/bash
# A scheduler whose devices are nodes that Slurm lends: they come as jobs ask for them, are preempted, are
# found again by the next scheduler, are given back. Every job has the bits of one device, and nothing is left
# in squeue or ps. Against a real Slurm of four nodes where SLURM_REAL=1, else against slurm_fake.sh.
. "$(dirname "$0")/program.sh"
[ "${SLURM_REAL:-}" ] || SLURM_FAKE=1
. "$SOURCE_DIR/tests/slurm.sh"
dir=$work/D pid=
ended_by_test()
{
	[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null
	slurm_end
	kill $(all_of) 2>/dev/null
	end_jobs
	rm -rf "$work"
}
# all processes of this scheduler, wherever
all_of() { pgrep -f -- "$work/D" || true; }
trap ended_by_test EXIT
slurm_begin || { tail -n 5 "$work"/slurm/log/* "$work"/slurm/munge/*.log; failed "Slurm does not begin"; }
slurm_is_real || touch "$work/slurm/again"

cat >job.yaml <<END
job: {name: tiny, seed: 3, steps: 250}
model: {use: "builtin:mlp", args: {input: [1, 6, 6], hidden: [60], classes: 4}}
data: {kind: synthetic, count: 512}
batch: {global: 64, virtual_nodes: 8}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 100000 steps, keep: 2}
eval: {every: 0}
workers: {detect: 500 ms}
END

states() { squeue -h -r -t all -O 'JobArrayID:|,State:|,exit_code:|,RestartCnt:|,NodeList:|,Reason:|' |
	tr -d ' '; }
are() { [ "$(states | grep -c "|$1|")" = "$2" ]; }
none_left() { ! states | grep -qE '[|](RUNNING|PENDING|COMPLETING|CONFIGURING)[|]'; }
serve()
{
	HD_FAIL=${paced:-} "$HEDDLE_BIN" serve --dir "$dir" --launch slurm --policy fifo --round 1 \
		--devices 1 --idle 1s "$@" 2>>serve.log &
	pid=$!
	await test -S "$dir/heddle.sock" || failed "the scheduler does not begin: $(cat serve.log)"
	await heddle jobs --dir "$dir" >/dev/null || failed "the scheduler does not answer: $(cat serve.log)"
}
paced=
! has_failpoints || paced=step.begin:delay=20
job() { heddle jobs --dir "$dir" --json | tr '{' '\n' | grep "\"id\":$1,"; }
state() { job "$1" | grep -o '"state":"[a-z]*"' | cut -d '"' -f 4; }
is() { [ "$(state "$1")" = "$2" ]; }
steps() { job "$1" | grep -o '"step":[0-9]*' | cut -d: -f2; }
beyond() { [ "$(steps "$1")" -gt "$2" ]; }

expect 2 heddle serve --dir "$dir" --launch slurm
says 'say how many nodes'
expect 2 heddle serve --dir "$dir" --launch ssh --nodes 2
says "heddle worker --join DIR/pilots/TYPE"
expect 2 heddle serve --dir "$dir" --pool cpu:2 --nodes 2
says 'goes with --launch slurm'
expect 2 heddle serve --dir "$dir" --launch slurm --nodes 2 --pool fast:2
says 'k80 (2), v100 (2)'
expect 2 heddle serve --dir "$dir" --launch slurm --nodes 2 --partition nope
says 'sinfo -s'
passed "what makes no sense is refused before anything is submitted"

serve --nodes 0..4 --pool v100:2:2,k80:2
! states | grep -q . || failed "nodes are taken before a job asks for them: $(states)"
expect 0 heddle submit job.yaml --dir "$dir" --scale 2
await is 1 running || failed "job 1 does not run: $(heddle explain 1 --dir "$dir"; states)"
await beyond 1 5
heddle jobs --dir "$dir" | grep -q ' v100 ' || failed "it does not run on the faster nodes"
expect 0 heddle status --dir "$dir"
says 'nodes of'
are RUNNING 2 || failed "not 2 nodes: $(states)"
passed "nodes are asked for as a job comes, those of the faster type"

slurm_preempts v1
await grep -qE "v1, .*(was taken back|is gone)" serve.log ||
	failed "a node that is preempted is not missed: $(cat serve.log)"
! grep -q '"kind":"lost"' "$dir"/runs/1-tiny/events.ndjson ||
	failed "a preempted worker is lost: it did not leave"
runs_again() { is 1 running && [ "$(grep -c '^>> start  job 1' serve.log)" -ge 2 ]; }
await runs_again || failed "job 1 does not go on: $(heddle explain 1 --dir "$dir"; states; cat serve.log)"
passed "a node that is preempted hands over, and the job goes on when it is back"

# the scheduler dies: jobs go on, and the next one finds its nodes
starts=$(grep -c job_start "$dir/runs/1-tiny/events.ndjson")
kill -9 "$pid"
wait "$pid" 2>/dev/null
# an sbatch of its own that was under way makes its batch job yet
has_asked() { [ -z "$(pgrep -f -- "sbatch .*$work/D")" ]; }
await has_asked
before=$(states | cut -d '|' -f 1 | sort)
rm -f "$dir/heddle.sock"
serve --nodes 0..4 --pool v100:2:2,k80:2 --drain
await is 1 done || failed "job 1 is $(state 1): $(heddle explain 1 --dir "$dir"; cat serve.log)"
same "$(states | cut -d '|' -f 1 | sort | grep -cvxF "$before")" 0 "batch jobs beyond those that there were"
same "$(grep -c job_start "$dir/runs/1-tiny/events.ndjson")" "$starts" "starts of job 1"
passed "a scheduler that starts again finds its nodes, and the job goes on"

expect 0 heddle run job.yaml --out alone --workers 1 --devices 1
same "$(heddle ckpt digest "$dir/runs/1-tiny")" "$(heddle ckpt digest alone)" "digest of job 1"
passed "the bits are those of one device"

! slurm_is_real || scancel -n wrap
await none_left || failed "nodes without work are not given back: $(states)"
ended_well() { ! kill -0 "$pid" 2>/dev/null; }
await test -z "$(ls "$dir"/pilots/*/*.state 2>/dev/null)" || failed "left: $(ls "$dir"/pilots/*)"
passed "idle nodes are given back"

# a drain gives all back at once, jobs commit
expect 0 heddle submit job.yaml --dir "$dir" -s job.steps=100000
await beyond 2 5 || failed "job 2 does not run: $(heddle explain 2 --dir "$dir"; cat serve.log)"
kill "$pid"
await ended_well || failed "a drain does not end: $(cat serve.log)"
wait "$pid"
same $? 0 "exit code of the scheduler"
pid=
none_left || failed "left in squeue: $(states)"
gone() { [ -z "$(all_of)" ]; }
await gone || failed "left in ps: $(ps -fp $(all_of))"
expect 0 heddle ckpt verify "$dir/runs/2-tiny"
passed "a drain leaves a checkpoint and no node"
