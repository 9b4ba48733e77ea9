#!/bin/bash
# Several worker processes: the bits of one device whatever comes, goes and dies.
. "$(dirname "$0")/program.sh"
write_jobs 6

# every model on several workers with several devices
for job in ${HD_ELASTIC_JOBS:-mlp lenet gpt resnet18 bert lstm}; do
	expect 0 heddle run $job.yaml --out $job --devices 1 --json -q
	first=$(number digest)
	for shape in 1x1 2x1 3x2 5x1; do
		expect 0 heddle run $job.yaml --out $job-$shape --workers ${shape%x*} --devices ${shape#*x} \
			--json -q
		same "$(number digest)" "$first" "$job on ${shape%x*} workers of ${shape#*x} devices"
	done
	expect 0 heddle ckpt diff $job $job-3x2
	says IDENTICAL
done
passed "mlp, lenet, gpt, resnet18, bert, lstm: equal bits on 1, 2, 3 and 5 workers"
[ "${1:-}" != bits ] || exit 0                # all that optimised code has to show: program_elastic_bits

# runs that go on for a while, and their undisturbed twin: steps of brisk.yaml compute next to nothing and
# take their time all the same; those of long.yaml compute, for a worker that does it slowly
cat >brisk.yaml <<END
job: {name: long, seed: 3, steps: 1200}
model: {use: "builtin:mlp", args: {input: [1, 8, 8], hidden: [32, 24], classes: 4}}
data: {kind: synthetic, count: 100}
batch: {global: 48, virtual_nodes: 12}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 200 steps, keep: 2}
eval: {every: 0}
trace: {digest: 1, samples: true}
workers: {detect: 500 ms, pace: 4 ms}
END
sed -e 's/\[1, 8, 8\], hidden: \[32, 24\]/[1, 20, 20], hidden: [100, 50]/' -e 's/count: 100/count: 1000/' \
	-e 's/global: 48/global: 480/' -e 's/, pace: 4 ms//' brisk.yaml >long.yaml
expect 0 heddle run brisk.yaml --out twin --devices 1 --json -q
first=$(number digest)

pids()
{
	heddle status "$1" --json 2>/dev/null | grep -o '"pid":[0-9]*' | cut -d: -f2 | tail -n +2 | grep -vx 0
}
over() { await test -f "$1/ckpt/step-000001200/MANIFEST.json" || failed "$1 did not end"; }
nobody_of() { ! pgrep -f -- "--join $1" >/dev/null && ! pgrep -f -- "--job $1" >/dev/null; }
gone() { await nobody_of "$1" || failed "processes of $1 stay behind"; }
ends_well()
{
	over "$1"
	gone "$1"
	expect 0 heddle ckpt digest "$1"
	same "$(cat out)" "$first" "$2"
	expect 0 heddle ckpt diff "$1" twin
	says 'digest logs agree'
	plans_of "$1"
	# from what the workers gathered: 1200 steps are 400 data epochs of three steps
	expect 0 heddle data verify "$1" --json
	says '"steps":1200,"epochs":400,"samples":100,"rest":0'
	# a record for each committed step; members keep those of 256 steps for a coordinator that is to come
	grep -o '"step":[0-9]*' "$1/metrics.ndjson" | sort -t: -k2n -u | wc -l >out
	[ "$(cat out)" -ge "${3:-1200}" ] || failed "$1 has records of $(cat out) steps of 1200"
}

"$HEDDLE_BIN" run brisk.yaml --out grow --workers 2 --devices 1 -s job.steps=1000000 -q 2>log &
run=$!
reach grow 30
expect 0 heddle scale grow 4 --wait
says '4 workers asked for, 4 now'
expect 0 heddle scale grow -3
expect 0 heddle status grow
says 'long  running'
expect 0 heddle status grow --json
grep -q '"workers":\[{"id":[0-9]*,"worker":[0-9]*,"state":"member","pid":[1-9][0-9]*,' out ||
	failed "workers lack worker, state or pid: $(cat out)"
grep -o '"compute_ms":[0-9.e+-]*' out | sort -u | wc -l >n
[ "$(cat n)" -ge 2 ] || failed "all workers tell the same time: $(cat out)"
expect 2 heddle scale grow 99
says 'this job takes from 1'
expect 2 heddle stop grow --worker 77
says 'there is no worker 77'
stops_with_bits_of_one grow brisk.yaml "2 workers, then 4, then 1"
gone grow
plans_of grow 3
expect 0 heddle data verify grow
passed "workers come and go between two steps"

"$HEDDLE_BIN" run brisk.yaml --out slow --workers 1 --devices 1 -s job.steps=1000000 \
	-s workers.detect='60 s' -q 2>log &
run=$!
reach slow 30
stopped=$(heddle status slow --json | grep -o '"pid":[1-9][0-9]*' | cut -d: -f2 | tail -n 1)
kill -STOP $stopped                          # so no member sends the newcomer the state
"$HEDDLE_BIN" scale slow 2 --wait >scaled 2>waits &
scale=$!
await grep -q '^scale: 1 of 2 workers after [0-9]* s, worker 1 is [a-z]*' waits ||
	failed "a wait does not say for what: $(cat waits)"
kill -CONT $stopped
wait $scale || failed "scale ended with $?"
grep -q '2 workers asked for, 2 now' scaled || failed "scale said: $(cat scaled)"
expect 0 heddle stop slow
wait $run
passed "scale --wait names what it waits for"

"$HEDDLE_BIN" run brisk.yaml --out die --workers 3 --devices 1 -q 2>log &
reach die 30
kill -9 "$(pids die | head -n 1)"
reach die 150
kill -9 "$(pids die | tail -n 1)"
run=$!
expect 0 heddle top die --every 150 --json         # ends with the run
says '"state":"running"'
wait $run || failed "die ended with $?"
ends_well die "two workers killed"
grep -q '"kind":"lost"' die/events.ndjson || failed "no event of a loss"
passed "a worker that is killed costs its virtual nodes of one step"

# an observer has asked, and the coordinator dies before it answers
"$HEDDLE_BIN" run brisk.yaml --out watched --workers 2 --devices 1 -s job.steps=1000000 -q 2>log &
run=$!
reach watched 30
"$HEDDLE_BIN" top watched --every 50 --json >seen 2>top.err &
top=$!
await test -s seen
kill -STOP $run
sleep 0.5                         # the next question lies in its queue
kill -9 $run
wait $run 2>/dev/null
await answers_now watched || failed "no coordinator of watched"
at=$(step watched)
shown() { [ "$(tail -n 1 seen | grep -o '"step":[0-9]*' | cut -d: -f2)" -gt "$at" ]; }
await shown || failed "top does not show the run under another coordinator: $(cat top.err)"
expect 0 heddle stop watched
wait $top || failed "top of a run whose coordinator died ended with $?: $(cat top.err)"
gone watched
passed "an observer is not disturbed by a coordinator that dies"

"$HEDDLE_BIN" run brisk.yaml --out orphan --workers 2 --devices 1 -q 2>log &
reach orphan 30
kill -9 $!
wait $! 2>/dev/null
ends_well orphan "the coordinator killed" 30
# time goes on from the run's beginning, and steps without a line are reported
grep -o '"t":[0-9.]*' orphan/metrics.ndjson | cut -d: -f2 | sort -gc ||
	failed "time of the orphan's steps goes back"
lost=$(grep -o '"text":"[0-9]* steps have no line' orphan/events.ndjson | tr -dc '0-9\n' | paste -sd+)
same "$(($(cut -d, -f2 orphan/metrics.ndjson | sort -u | wc -l) + ${lost:-0}))" 1200 \
	"steps recorded and steps reported lost"
passed "a coordinator that is killed is replaced by a member"

# one of two workers is slow: whoever coordinates next knows it from the store, and gives it no even share
"$HEDDLE_BIN" run long.yaml --out known --workers 1 --devices 1 -s job.steps=1000000 \
	-s 'checkpoint.every=100000 steps' -q 2>log &
run=$!
reach known 30
"$HEDDLE_BIN" worker --join known --devices 1 --slow 4 -q 2>slow.log &
slow=$!
share()
{
	heddle status known --json 2>/dev/null | grep -o '"id":0,[^}]*' |
		grep -o '"virtual_nodes":[0-9]*' | cut -d: -f2
}
has_more() { [ "$(share || true)" ] && [ "$(share)" -ge 8 ] 2>/dev/null; }
two_there() { [ "$(heddle status known --json 2>/dev/null | grep -o '"id":' | wc -l)" -ge 2 ]; }
await two_there || failed "the slow worker did not come"
expect 0 heddle scale known 2
await has_more || failed "the fast worker has $(share) of 12 virtual nodes"
await grep -q '"kind":"plan"' known/events.ndjson || failed "no event of other shares"
kill -9 $run
wait $run 2>/dev/null
await grep -q 'goes on with the paces of' known/events.ndjson ||
	failed "the coordinator that followed knows no paces"
await has_more || failed "after another coordinator came the fast worker has $(share) of 12 virtual nodes"
expect 0 heddle stop known --now
wait $slow || true
gone known                        # nor does a coordinator stay that waits for workers
passed "a coordinator that follows knows the workers' paces; stop --now leaves no process behind"

"$HEDDLE_BIN" run brisk.yaml --out paused --workers 2 --devices 1 -q 2>log &
reach paused 30
stopped=$(pids paused | tail -n 1)
kill -STOP "$stopped"
sleep 1.2
kill -CONT "$stopped" 2>/dev/null
wait $! || failed "paused ended with $?"
ends_well paused "a worker stopped and continued"
passed "a worker that was stopped is fenced and harms nothing"

# slowly, so that it is stopped before step 700 on any machine
"$HEDDLE_BIN" run brisk.yaml --out halted --workers 2 --devices 1 -s workers.pace='30 ms' -q 2>log &
reach halted 30
expect 0 heddle stop halted
status=0
wait $! || status=$?
[ $status -eq 75 ] || failed "stopped: expected exit 75, got $status"
expect 0 heddle resume halted --devices 2 --steps 700 -q
expect 0 heddle resume halted --devices 2 --steps 710 -q
expect 0 heddle resume halted --devices 3 --steps 720 -q
expect 0 heddle resume halted --workers 3 --devices 1 -s workers.pace='4 ms' -q
ends_well halted "stopped, resumed by itself and on 3 workers"
plan_at() { grep "\"step\":$1," halted/metrics.ndjson | tail -n 1 | grep -o '"plan":[0-9]*' | cut -d: -f2; }
same "$(plan_at 700) $(plan_at 710)" "$(plan_at 699) $(($(plan_at 699) + 1))" \
	"an equal plan keeps its number, another one counts on"
[ "$(plan_at 720)" -gt "$(plan_at 710)" ] ||
	failed "workers took the number of a plan that was there: $(plan_at 720)"
passed "stop ends with a checkpoint and exit 75, resume goes on with other workers"

expect 0 heddle chaos run brisk.yaml --seed 3 --kills 1 --steps 800 --workers 3 --out chaos --json
says '"identical":true'
gone chaos/chaos
expect 2 heddle chaos run brisk.yaml --out chaos
says 'is there already'
passed "a run under chaos ends with the bits of the undisturbed one"

# everything at once: two workers and a slower third, a kill, other sizes, a stop, others
# that go on
"$HEDDLE_BIN" run brisk.yaml --out all --workers 2 --devices 1 -s job.steps=1000000 -q 2>log &
run=$!
reach all 30
"$HEDDLE_BIN" worker --join all --devices 1 --slow 3 -q 2>slow.log &
slow=$!
reach all 150
expect 0 heddle scale all 4 --wait
reach all $(($(step all) + 50))
kill -9 "$(pids all | head -n 1)"
reach all $(($(step all) + 100))
expect 0 heddle scale all -1
reach all $(($(step all) + 50))
expect 0 heddle stop all
status=0
wait $run || status=$?
[ $status -eq 75 ] || failed "all: expected exit 75, got $status"
wait $slow || true
grep -q '"kind":"lost"' all/events.ndjson || failed "no event of a loss"
expect 0 heddle resume all --workers 3 --devices 1 -q \
	--steps $((10#$(ls all/ckpt | tail -n 1 | cut -d- -f2) + 200))
has_bits_of_one all brisk.yaml "uneven, resized, killed, stopped and resumed"
says 'digest logs agree'
plans_of all
expect 0 heddle data verify all
same "$(grep -o '"step":[0-9]*' all/metrics.ndjson | sort -t: -k2n -u | wc -l)" "$steps" \
	"steps with a record, of a run that was killed, stopped and resumed"
gone all
passed "uneven workers, resizes, a kill and a resume in one run end with the bits of one device"

# no worker may come back for a run whose folder was removed
"$HEDDLE_BIN" run brisk.yaml --out removed --workers 2 --devices 1 -s job.steps=1000000 -q 2>log &
reach removed 30
workers=$(pids removed)
rm -rf removed
kill -9 $!
wait $! || true
for pid in $workers; do
	await not kill -0 "$pid" 2>err || failed "worker $pid goes on without coordinator and folder"
done
passed "workers whose run was removed leave"

# a run that sizes itself: workers cost more than they bring here, so it settles on one; when it does depends
# on the machine
cat >tiny.yaml <<END
job: {name: tiny, seed: 3, steps: 10000000}
model: {use: "builtin:mlp", args: {input: [1, 4, 4], hidden: [8], classes: 4}}
data: {kind: synthetic, count: 100}
batch: {global: 16, virtual_nodes: 4}
optim: {kind: sgd, lr: 1e-2, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 10000000 steps}
eval: {every: 0}
elastic: {autoscale: {policy: curve, objective: cost}}
END
"$HEDDLE_BIN" run tiny.yaml --out tiny --workers 3 --devices 1 -q 2>log &
run=$!
settled()
{
	grep -qs '"kind":"autoscale".*settle on 1' tiny/events.ndjson && tail -n 1 tiny/metrics.ndjson |
		grep -q '"workers":1,'
}
await settled || failed "it did not settle on 1: $(grep autoscale tiny/events.ndjson | tail -n 3)"
stops_with_bits_of_one tiny tiny.yaml "a run that sizes itself"
"$HEDDLE_BIN" run brisk.yaml --out auto --workers 2 --devices 1 -s job.steps=1000000 -q 2>log &
reach auto 30
expect 2 heddle scale auto auto --policy curv
says 'did you mean curve'
expect 2 heddle scale auto 2 --policy curve
says '--policy goes with auto'
expect 0 heddle scale auto auto
expect 0 heddle status auto
says 'autoscale curve'
expect 0 heddle scale auto 2
expect 0 heddle status auto --json
says '"autoscale":"off"'
expect 0 heddle stop auto
status=0
wait $! || status=$?
[ $status -eq 75 ] || failed "stopped: expected exit 75, got $status"
passed "an autoscaled run says why and settles; a number turns it off"

# a worker that is slow while others are not: another is started, and then it goes; its bits do not
"$HEDDLE_BIN" run long.yaml --out relief --workers 1 --devices 1 -s job.steps=1000000 \
	-s elastic.straggler.replace=true -q 2>log &
run=$!
reach relief 30
"$HEDDLE_BIN" worker --join relief --devices 1 --slow 6 -q 2>slow.log &
slow=$!
a_replacement_stands_by() { heddle status relief | grep -q standby; }
await a_replacement_stands_by || failed "the slow worker did not come"
expect 0 heddle scale relief 2
slow_is_gone() { ! kill -0 $slow 2>/dev/null; }
await slow_is_gone || failed "the slow worker stays: $(grep straggler relief/events.ndjson)"
wait $slow || failed "the worker that was replaced ended with $?"
await grep -q '"kind":"straggler".*was replaced' relief/events.ndjson || failed "no worker was replaced"
grep -q '"kind":"straggler".*another in its place saves' relief/events.ndjson || failed "no reason was given"
await test -e relief/flight/snapshots/0.hdfr || failed "no copy of what a straggler recorded"
two_replacements_stand_by() { heddle status relief | grep -q '2 of 2 workers'; }
await two_replacements_stand_by || failed "not two workers"
stops_with_bits_of_one relief long.yaml "a run in which a slow worker was replaced"
passed "another worker takes the place of a slow one, which goes then"

# a narrower processor: the same bits under portable kernels, refused under a library's
narrow=portable library=SSE41
grep -qw avx2 /proc/cpuinfo && library=AVX
grep -qw avx512dq /proc/cpuinfo && narrow=avx2 library=AVX2
"$HEDDLE_BIN" run brisk.yaml --out mixed --workers 1 --devices 1 -q -s job.kernels=portable \
	-s job.steps=1000000 2>log &
run=$!
reach mixed 30
"$HEDDLE_BIN" worker --join mixed --devices 1 --isa $narrow -q 2>narrow.log &
stands_by() { heddle status mixed | grep -q standby; }
await stands_by || failed "the worker of $narrow kernels did not come"
expect 0 heddle scale mixed 2 --wait
stops_with_bits_of_one mixed brisk.yaml "a worker of $narrow kernels beside wider ones" \
	-s job.kernels=portable
grep -q '"workers":2' mixed/metrics.ndjson || failed "the worker of $narrow kernels was never a member"
if heddle doctor | grep -q '^kernels library.*oneDNN, fingerprint'; then
	# its convolutions differ; for a job of products alone it would be taken, rightly
	"$HEDDLE_BIN" run lenet.yaml --out library --workers 1 --devices 1 -q -s job.kernels_auto=library \
		-s job.steps=1000000 2>log &
	reach library 5
	export ONEDNN_MAX_CPU_ISA=$library
	expect 2 heddle worker --join library --devices 1
	unset ONEDNN_MAX_CPU_ISA
	says "its kernels differ from the job's: use a like machine, or start with kernels: portable"
	expect 0 heddle stop library --now
	wait $! || true
fi
passed "a worker capped to $narrow has the same bits under portable kernels, and is refused under a library's"

# what is refused
expect 2 heddle run mlp.yaml --out no --workers 0
expect 2 heddle run mlp.yaml --out no2 --workers 40
says 'this job takes from 1'
(umask 077; mkdir -p no3/log/hand-{0..9}.log)         # no worker gets a log: none can be started
expect 2 heddle run mlp.yaml --out no3 --workers 2
says 'no3/log/hand-'
expect 3 heddle worker --join nowhere
expect 3 heddle status nowhere
expect 3 heddle scale twin 2
says 'no process coordinates'
expect 2 heddle worker
expect 2 heddle serve
passed "refusals say what and what to do"
