#!/bin/bash
# A scheduler without pilots: each job is one batch job of Slurm, of as many nodes as it is given. To have
# more or fewer it commits, ends, and another batch job goes on; preempted likewise. Every job has the bits of
# one device, and nothing is left in squeue or ps. Against a real Slurm of four nodes where SLURM_REAL=1, else
# against slurm_fake.sh.
. "$(dirname "$0")/program.sh"
command -v curl >/dev/null || { echo "skip: no curl, which speaks to the scheduler's socket"; exit 77; }
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
all_of() { pgrep -f -- "$work/D" || true; }
trap ended_by_test EXIT
slurm_begin || { tail -n 5 "$work"/slurm/log/* "$work"/slurm/munge/*.log; failed "Slurm does not begin"; }
slurm_is_real || touch "$work/slurm/again"

cat >job.yaml <<END
job: {name: tiny, seed: 3, steps: 100000}
model: {use: "builtin:mlp", args: {input: [1, 6, 6], hidden: [60], classes: 4}}
data: {kind: synthetic, count: 512}
batch: {global: 64, virtual_nodes: 8}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 100000 steps, keep: 2}
eval: {every: 0}
workers: {detect: 2 s}
END

states() { squeue -h -r -t all -O 'JobArrayID:|,State:|,exit_code:|,RestartCnt:|,NodeList:|,Reason:|' |
	tr -d ' '; }
are() { [ "$(states | grep -c "|$1|")" = "$2" ]; }
none_left() { ! states | grep -qE '[|](RUNNING|PENDING|COMPLETING|CONFIGURING)[|]'; }
serve()
{
	HD_FAIL=${paced:-} "$HEDDLE_BIN" serve --dir "$dir" --launch slurm --no-pilots --policy fifo \
		--round 1 --devices 1 "$@" 2>>serve.log &
	pid=$!
	await test -S "$dir/heddle.sock" || failed "the scheduler does not begin: $(cat serve.log)"
	await heddle jobs --dir "$dir" >/dev/null || failed "the scheduler does not answer: $(cat serve.log)"
}
paced=
! has_failpoints || paced=step.begin:delay=10
job() { heddle jobs --dir "$dir" --json | tr '{' '\n' | grep "\"id\":$1,"; }
state() { job "$1" | grep -o '"state":"[a-z]*"' | cut -d '"' -f 4; }
is() { [ "$(state "$1")" = "$2" ]; }
step() { job "$1" | grep -o '"step":[0-9]*' | cut -d: -f2; }
beyond() { [ "$(step "$1")" -gt "$2" ]; }
scale() { expect 0 curl -sSf --max-time 20 --unix-socket "$dir/heddle.sock" \
	-H 'Content-Type: application/json' -d "{\"scale\":$2}" "http://localhost/v1/jobs/$1/scale"; }
# job, lease, nodes: its batch job is there, of so many nodes
has_batch() { grep -qsx "#SBATCH --nodes=$3" "$dir"/runs/"$1"-*/launch.sh &&
	grep -q -- "^#SBATCH --job-name=heddle-.*-job-$1-$2\$" "$dir"/runs/"$1"-*/launch.sh; }
goes_on() { has_batch "$@" && is "$1" running && beyond "$1" "$((at + 5))"; }
awaits() { await goes_on "$@" || failed "job $1 does not go on by lease $2: $(state "$1")" \
	"$(heddle explain "$1" --dir "$dir"; states; cat serve.log)"; at=$(step "$1"); }

expect 2 heddle serve --dir "$dir" --no-pilots --pool cpu:2
says 'goes with --launch slurm'
expect 2 heddle serve --dir "$dir" --launch slurm --no-pilots --nodes 1..4
says 'no node is held without a job'
expect 2 heddle serve --dir "$dir" --launch slurm --no-pilots --nodes 3
says 'say by --pool'
passed "what makes no sense is refused before anything is submitted"

at=0
serve --nodes 4 --pool v100:2:2,k80:2
! states | grep -q . || failed "nodes are taken before a job asks for them: $(states)"
expect 0 heddle submit job.yaml --dir "$dir" --scale 2 --time 90min
awaits 1 1 2
are RUNNING 1 || failed "not one batch job: $(states)"
heddle jobs --dir "$dir" | grep -q ' v100 ' || failed "it does not run on the faster nodes"
grep -qx '#SBATCH --time=93' "$dir/runs/1-tiny/launch.sh" || failed "its time limit is not said to Slurm"
expect 0 heddle explain 1 --dir "$dir"
says 'Slurm job 1_0'
passed "a job is one batch job of as many nodes as it is given"

scale 1 1
awaits 1 2 1
scale 1 2
awaits 1 3 2
grep -q '^>> move  job 1  by a checkpoint' serve.log || failed "it was not moved: $(cat serve.log)"
passed "to have fewer or more it commits, and another batch job goes on"

slurm_preempts v1
slurm_is_real || touch "$work/slurm/down.v1"
left() { grep -q '^>> left  job 1 ' serve.log && [ "$(grep -c '^>> left  job 1 ' serve.log)" -ge 3 ]; }
await left || failed "a preempted batch job does not leave: $(states; cat serve.log)"
grep -q 'all its workers were asked to leave' "$dir/runs/1-tiny/log/coordinator.log" ||
	failed "preempted workers do not leave"
waits() { heddle explain 1 --dir "$dir" | grep -q 'Slurm job .* waits: '; }
await waits || failed "it is not said what it waits for: $(heddle explain 1 --dir "$dir"; states)"
passed "preempted, it commits, and its next batch job waits in the queue"

# the scheduler dies while it waits, and while it runs
again()
{
	kill -9 "$pid"
	wait "$pid" 2>/dev/null
	rm -f "$dir/heddle.sock"
	await has_asked
	before=$(states | cut -d '|' -f 1 | sort)
	waiting=$(states | grep '|PENDING|' | cut -d '|' -f 1)
	serve --nodes 4 --pool v100:2:2,k80:2 --drain
}
has_asked() { [ -z "$(pgrep -f -- "sbatch .*$work/D")" ]; }
again
await waits || failed "the next scheduler does not know what it waits for: $(heddle explain 1 --dir "$dir")"
same "$(states | cut -d '|' -f 1 | sort | grep -cvxF "$before")" 0 "batch jobs beyond those that there were"
slurm_is_real && scancel -n wrap
rm -f "$work/slurm/down.v1"
awaits 1 4 2
same "$(states | grep '|RUNNING|' | cut -d '|' -f 1)" "$waiting" "the batch job that runs, and that waited"
starts=$(grep -c job_start "$dir/runs/1-tiny/events.ndjson")
# its script cannot be written for now
mv "$dir/runs/1-tiny/launch.sh" kept.sh
mkdir "$dir/runs/1-tiny/launch.sh"
again
rmdir "$dir/runs/1-tiny/launch.sh"
mv kept.sh "$dir/runs/1-tiny/launch.sh"
awaits 1 4 2
same "$(states | cut -d '|' -f 1 | sort | grep -cvxF "$before")" 0 "batch jobs beyond those that there were"
same "$(grep -c job_start "$dir/runs/1-tiny/events.ndjson")" "$starts" "starts of job 1"
passed "a scheduler that starts again finds what waits and what runs"

# a cancelled one leaves nothing, whether it runs or waits
expect 0 heddle submit job.yaml --dir "$dir" --scale 2
expect 0 heddle submit job.yaml --dir "$dir" --scale 2
await is 2 running || failed "job 2 does not run: $(heddle explain 2 --dir "$dir"; states)"
expect 0 heddle cancel 1 --dir "$dir"
await is 1 cancelled || failed "job 1 is $(state 1)"
expect 0 heddle ckpt verify "$dir/runs/1-tiny"
expect 0 heddle run job.yaml --out alone --workers 1 --devices 1 --steps "$(step 1)"
same "$(heddle ckpt digest "$dir/runs/1-tiny")" "$(heddle ckpt digest alone)" "digest of job 1"
passed "the bits are those of one device"

kill "$pid"
ended_well() { ! kill -0 "$pid" 2>/dev/null; }
await ended_well || failed "a drain does not end: $(cat serve.log)"
wait "$pid"
same $? 0 "exit code of the scheduler"
pid=
none_left || failed "left in squeue: $(states)"
gone() { [ -z "$(all_of)" ]; }
await gone || failed "left in ps: $(ps -fp $(all_of))"
expect 0 heddle ckpt verify "$dir/runs/2-tiny"
passed "a drain leaves checkpoints and nothing of Slurm"
