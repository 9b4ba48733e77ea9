#!/bin/bash
# comm.order and comm.buckets: when and in which pieces workers send; the bits of one device in all of them.
. "$(dirname "$0")/program.sh"
cat >wide.yaml <<END
job: {name: wide, seed: 3, steps: 5}
model: {use: "builtin:mlp", args: {input: [1, 20, 20], hidden: [500, 700, 300], classes: 4}}
data: {kind: synthetic, count: 200}
batch: {global: 12, virtual_nodes: 4}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
eval: {every: 0}
trace: {digest: 1}
END
expect 0 heddle run wide.yaml --out one --devices 1 -q
n=0
# a row: workers, more settings
while read -r workers more; do
	n=$((n + 1))
	# shellcheck disable=SC2086  # several words
	expect 0 heddle run wide.yaml --out "run$n" --workers "$workers" --devices 1 -q $more
	expect 0 heddle ckpt diff one "run$n"
	says IDENTICAL
	[[ $more == *stages* ]] || says 'digest logs agree'
	grep -q '"settled":"[a-z+]* .*ranks ' "run$n/job.resolved.json" || failed "run$n: nothing was settled"
done <<END
2 -s comm.order=fifo -s comm.buckets=256KiB
3 -s comm.order=random -s comm.buckets=none -s comm.sync=sharded
2 -s comm.order=search -s comm.buckets=auto
3 -s comm.order=tic -s comm.buckets=8MiB
2 -s comm.order=tac -s comm.sync=stages -s parallel.mode=pipeline -s comm.buckets=none
3 -s comm.order=search -s comm.sync=parameter-server -s comm.buckets=64KiB
1 -s comm.order=tic+
END
passed "$n settings: the bits of one device"

# what buckets take is judged before a worker starts: one of several stages is held by all of them
staged="--workers 2 --devices 1 -s comm.sync=stages -s parallel.mode=pipeline"
predicted() { grep -o 'worker 0: memory: .*gradients [0-9.]*' out err; }
# shellcheck disable=SC2086  # several words
{
	expect 0 heddle run wide.yaml $staged --dry-run
	was=$(predicted)
	expect 0 heddle run wide.yaml $staged --dry-run -s comm.buckets=1GiB
	[ "$(predicted)" != "$was" ] || failed "a single bucket takes what four take: $was"
	expect 11 heddle run wide.yaml --out unfit -q $staged -s comm.buckets=1GiB -s workers.memory=32MiB
	says 'the job needs'
	[ ! -d unfit ] || failed "workers were started that do not fit"
}
passed "buckets that do not fit are refused"

# a tied weight, whose gradient has two parts
write_jobs 3
expect 0 heddle run gpt.yaml --out gpt-one --devices 1 -q
expect 0 heddle run gpt.yaml --out gpt-cut --workers 2 --devices 1 --steps 2 -q \
	-s comm.buckets=none
grep -q '"settled":"[^"]* segments ' gpt-cut/job.resolved.json || failed "gpt was not cut"
was=$(grep -o '"settled":"[^"]* segments [^"]*"' gpt-cut/job.resolved.json)
expect 0 heddle resume gpt-cut --workers 2 --devices 1 -q
same "$(grep -o '"settled":"[^"]* segments [^"]*"' gpt-cut/job.resolved.json)" "$was" "settled by a resume"
HEDDLE_COMM_BUCKETS=8MiB expect 0 heddle resume gpt-cut --workers 2 --devices 1 -q
[ "$(grep -o '"settled":"[^"]* segments [^"]*"' gpt-cut/job.resolved.json)" != "$was" ] ||
	failed "the environment's comm.buckets is in the job, and the buckets are those of before"
expect 0 heddle ckpt diff gpt-one gpt-cut
says IDENTICAL
passed "a tied weight in buckets of its own, and a resume"

# a loss within a step, of uneven buckets that go in a random order
last()
{
	heddle status "$1" --json 2>/dev/null | grep -o '"pid":[0-9]*' | cut -d: -f2 | tail -n +2 | tail -n 1
}
expect 0 heddle run wide.yaml --out whole --devices 1 -q -s job.steps=40
"$HEDDLE_BIN" run wide.yaml --out killed --workers 3 --devices 1 -q -s job.steps=40 -s comm.sync=sharded \
	-s comm.order=random -s comm.buckets=none -s workers.pace="20 ms" 2>log &
run=$!
reach killed 5
# as one that read the job before a resume cut the buckets otherwise
expect 2 heddle worker --join killed --devices 1 -q -s "comm.settled=fifo ranks 0-3"
says 'with other buckets'
kill -9 "$(last killed)"
wait $run || failed "the run of a killed worker ended with $?"
grep -q '"kind":"lost"' killed/events.ndjson || failed "no worker was lost"
expect 0 heddle ckpt diff whole killed
says IDENTICAL
says 'digest logs agree'
passed "a worker is killed: the bits of one device"

# a worker that comes while the run still measures, and one that comes later: the same buckets at both
"$HEDDLE_BIN" run wide.yaml --out early --workers 2 -s workers.start=others -q \
	-s comm.sync=stages -s parallel.mode=pipeline -s parallel.stages=2 2>log &
run=$!
until [ -e early/job.resolved.json ]; do kill -0 $run || failed "the run ended with no job"; done
"$HEDDLE_BIN" worker --join early --devices 1 -q 2>first.log &
first=$!
started() { grep -q '"kind":"job_start"' early/events.ndjson; }
await started || failed "the run did not start"
"$HEDDLE_BIN" worker --join early --devices 1 -q 2>second.log &
wait $run || failed "the run ended with $?: $(cat first.log second.log)"
wait $first || failed "the worker that came early ended with $?"
wait $!
if grep -q 'not announced\|of another length' first.log second.log; then
	failed "workers have other buckets: $(cat first.log second.log)"
fi
expect 0 heddle ckpt diff one early
says IDENTICAL
passed "a worker that comes before buckets are settled waits for them"

# a kept plan says what is sent of each bucket first; what times settled is predicted, by a link that is known
for run in run2 run3; do
	file=$(find "$run/plan" -name '*.plan' | sort | head -n 1)
	expect 0 heddle plan check "$file"
	expect 0 heddle plan show "$file"
	same "$(sed -n 's/^# xfer/xfer/p' out)" "$(grep '^xfer' "$file")" "transfers that plan show prints"
	says 'class=1 prio='
	same "$(grep -c '^xfer' "$file")" \
		"$(grep '^xfer' "$file" | grep -o 'bucket=[0-9]*' | sort -u | wc -l)" "buckets of $file"
done
if grep -q '^xfer.* ns=[1-9]' run2/plan/*.plan; then failed "a link that was not measured is predicted"; fi
grep -q '^xfer parm .* prio=.* ns=0 ' run2/plan/*.plan || failed "no transfers of new parameters"
grep -q '^xfer sum .* ns=[1-9]' run3/plan/*.plan || failed "no transfer is predicted"
if grep -q '^xfer.* ns=0 ' run3/plan/*.plan; then failed "not all transfers are predicted"; fi
passed "plans that were kept name the transfers of each bucket"
