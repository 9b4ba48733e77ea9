#!/bin/bash
# parallel: a model in stages over workers that come, go and are killed, with the bits of one device.
. "$(dirname "$0")/program.sh"
write_jobs 6

stages()
{
	local out=$1 job=$2
	shift 2
	train run $job.yaml --out $out "$@" -s parallel.mode=pipeline -s trace.digest=1
}

# JOB: what one device makes of it; then SCHEDULE:WORKERS:DEVICES:REPLICAS
for job in gpt resnet18; do
	train run $job.yaml --out $job-one --devices 1 -s trace.digest=1
	one=$digest
	for shape in 1f1b:3:1:1 zb-v:2:1:1 zb-h1:4:1:2 gpipe:2:2:1; do
		IFS=: read -r schedule workers devices replicas <<<"$shape"
		stages $job-$schedule $job --workers $workers --devices $devices \
			-s parallel.schedule=$schedule -s parallel.replicas=$replicas
		same "$digest" "$one" "$job: $schedule over $workers workers"
		cmp -s <(grep -o '"digest":"[^"]*"' $job-one/metrics.ndjson) \
			<(grep -o '"digest":"[^"]*"' $job-$schedule/metrics.ndjson) ||
			failed "$job: $schedule over $workers workers has other digests on the way"
	done
done
grep -q '^workers 0:0 1:1 2:2' gpt-1f1b/plan/0001.plan || failed "no workers of stages in the plan"
grep -q '^stages 3' gpt-1f1b/plan/0001.plan || failed "the plan has no stages"
expect 0 heddle plan check gpt-1f1b/plan/0001.plan
# measured and chosen
expect 0 heddle run gpt.yaml --out predicted --workers 3 -s parallel.mode=auto \
	-s parallel.schedule=1f1b --json --explain
# each instruction of each stage, as the workers say: F and B of three, and STEP
rows='"op":"(F|B|STEP)",("stage":[0-2],)?"count":[0-9]+,"predicted_ms":[0-9.e-]+,"measured_ms":[0-9.e-]+,'
for file in out predicted/plan/0001.measured.json; do
	same "$(grep -oE "$rows" $file | wc -l)" 7 "instructions that were measured in $file"
done
# before the first step of the view: what the event says, and what stands beside it at the end
said=$(grep -o '"predicted_ms":[0-9.e-]*' predicted/plan/0001.predicted.json | head -n 1)
grep -qF "$said" predicted/plan/0001.measured.json || failed "measured beside another prediction than $said"
grep -q '"measured_ms":null' predicted/plan/0001.predicted.json || failed "a prediction that was measured"
! grep -q '"missing"' predicted/plan/0001.measured.json || failed "a worker said nothing of its times"
grep -q 'Predicted and measured' predicted/report.html || failed "the report does not compare instructions"
for name in predicted_ms measured_ms least_ms; do
	awk -v x="$(number $name)" 'BEGIN { exit !(x > 0) }' || failed "$name is $(number $name)"
done
same "$(grep -c '"kind":"predicted"' predicted/events.ndjson)" 1 "events of a prediction"
median=$(grep -o '"step_ms":[0-9.]*' predicted/metrics.ndjson | cut -d: -f2 | sort -n | sed -n 4p)
awk -v a="$(number measured_ms)" -v b="$median" 'BEGIN { exit !(a > 0.999 * b && a < 1.001 * b) }' ||
	failed "measured_ms is $(number measured_ms), the median of the records $median"
expect 0 heddle ckpt diff gpt-one predicted
cuts=$(sed -n 's/.*"settled":"1f1b 3 3 \(0,[0-9]*,[0-9]*\) of 3".*/\1/p' predicted/job.resolved.json)
[ "$cuts" ] || failed "auto settles on nothing"
grep -q 'plan: 1f1b, 3 stages: [0-9.]* ms a step predicted' predicted/events.ndjson ||
	failed "auto says no choice"
grep -q "^cuts ${cuts//,/ }$" predicted/plan/0001.plan || failed "workers cut elsewhere than auto chose"
passed "two models in stages over 2 to 4 workers: the bits of one device, digests on the way included"

# what auto settled on stays at a resume, but not against what is asked for then, nor for other workers
settled() { sed -n 's/.*"settled":"\([^"]*\)".*/\1/p' again/job.resolved.json; }
train run gpt.yaml --out again --workers 2 --steps 1 -s parallel.mode=auto -s parallel.schedule=1f1b
was=$(settled)
[[ $was == "1f1b 2 2 0,"*" of 2" ]] || failed "auto settles on $was"
train resume again --workers 2 --steps 2
same "$(settled)" "$was" "settled by a resume that asks for nothing"
train resume again --workers 2 --steps 3 -s parallel.schedule=gpipe -s parallel.recompute=stage
[[ $(settled) == "gpipe 2 2 0,"*" recompute of 2" ]] || failed "asked for gpipe, auto settles on $(settled)"
grep -q '^cause .*gpipe with recomputation' "$(ls again/plan/*.plan | tail -n 1)" ||
	failed "the plan computes nothing again"
train resume again --workers 2 --steps 4
[[ $(settled) == "gpipe 2 2 0,"*" recompute of 2" ]] || failed "gpipe is forgotten: $(settled)"
train resume again --workers 1 -s parallel.schedule=auto -s parallel.recompute=auto
same "$(settled)" "data-parallel 1 1" "settled for one worker"
expect 0 heddle ckpt diff gpt-one again
train run gpt.yaml --out again-data --workers 2 --steps 2 -s parallel.mode=auto -s workers.memory=1GiB
cp again-data/job.resolved.json kept.json
train resume again-data --workers 2
cmp -s kept.json again-data/job.resolved.json || failed "what was chosen was chosen again"
# nor by a coordinator that starts it in the background
sed 's/^checkpoint:/parallel: {mode: auto, settled: "1f1b 3 3 of 3"}\n&/' gpt.yaml >settled.yaml
train run settled.yaml --out again-served --workers 3 --steps 2
grep -q '"settled":"1f1b 3 3 of 3"' again-served/job.resolved.json || failed "what is settled is chosen again"
expect 0 heddle serve --job again-served --workers 2 --steps 4 -q
grep -q '"settled":"[^"]* of 2"' again-served/job.resolved.json ||
	failed "a start in the background settles nothing"
expect 0 heddle serve --job again-served --workers 1 -q
expect 0 heddle ckpt diff gpt-one again-served
passed "what auto chose is kept by a resume, unless keys or workers are others"

# a run is resumed in any other shape: fewer workers, another schedule, one process
train run gpt.yaml --out gpt-long --devices 1
one=$digest
stages moved gpt --workers 3 --steps 2
train resume moved --workers 2 --steps 4 -s parallel.schedule=zb-v
grep -q '"width":2' moved/job.resolved.json || failed "the width of the run is not kept"
grep -q '"schedule":"zb-v"' moved/job.resolved.json || failed "the schedule of the run is not kept"
expect 2 heddle resume moved --workers 2 -s optim.lr=0.5
says 'what fixes the result differs'
train resume moved --devices 2 -s parallel.mode=auto
same "$digest" "$one" "a run over 3, then 2 workers, then in one process"
# by a plan file, which may be gone then; of its two pipelines, with more work for the faster one, one is left
train run gpt.yaml --out uneven --devices 4 --speeds 1,1,0.4,0.4 --steps 1 -s parallel.stages=2 \
	-s parallel.replicas=2 -s parallel.schedule=zb-h1
cp uneven/plan/0000.plan two.plan
sed -n 's/^map //p' two.plan | tr ' ' '\n' |
	awk -F '[-:]' '{ n[$NF] += NF > 2 ? $2 - $1 + 1 : 1 } END { exit !(n[0] > n[2] + 1 && n[2]) }' ||
	failed "the faster pipeline has no more work: $(grep ^map two.plan)"
explicit=(-s parallel.mode=explicit -s parallel.plan=two.plan)
expect 2 heddle run gpt.yaml --out no --workers 3 "${explicit[@]}"
says '2 pipelines of the plan (parallel.plan) have 4 devices, and 3 workers have 3: use --workers 4'
train run gpt.yaml --out listed --workers 5 --steps 2 "${explicit[@]}"
cmp -s <(grep -E '^([0-9]*:|map)' two.plan) <(grep -E '^([0-9]*:|map)' listed/plan/0001.plan) ||
	failed "lists are not those of the file"
# one of another model is refused, and leaves the run the one that it has
sed 's/^cuts .*/cuts 0 9000/' two.plan >other.plan
rm two.plan
expect 2 heddle resume listed --workers 4 -s parallel.plan=other.plan
train resume listed --workers 2 --steps 4
grep -q 'file, its 2 pipelines shared out to 1' listed/plan/*.plan || failed "one pipeline is of no file"
# in one process as well
expect 2 heddle resume listed --devices 3
says 'has 2 pipelines of 2 devices, and 3 are no whole number of these: use --devices 4'
for devices in 4 2; do
	train resume listed --devices $devices --steps $((7 - devices / 2))
	newest=$(ls listed/plan/*.plan | tail -n 1)
	grep -q "^cause .file.*: 2 stages, $((devices / 2)) pipeline" $newest ||
		failed "$devices devices of one process work by: $(grep cause $newest)"
done
train resume listed --workers 2 -s parallel.mode=pipeline -s parallel.plan=none
same "$digest" "$one" "a plan file over 5, 2 workers, 4 and 2 devices, then 2 workers without it"
passed "stages over workers are resumed with fewer, and with none"

# of three and one that has nothing to do any two are killed, at one time, then the coordinator, then it grows
# runs without an end of their own, so no death comes too late
write_jobs 1000000
"$HEDDLE_BIN" run gpt.yaml --out killed --workers 3 -s parallel.schedule=zb-v -s workers.pace=20ms \
	-s workers.detect=400ms -s checkpoint.every='10 steps' >killed.log 2>&1 &
reach killed 8
is_stopped() { heddle status $1 --json | grep -q '"state":"stopped"'; }
# RUN JOB: it is stopped wherever it is; one device comes to the same state
ends()
{
	expect 0 heddle stop $1
	await is_stopped $1 || failed "$1 does not stop"
	train run $2.yaml --out $1-one --devices 1 -s job.steps=1000000 \
		--steps $((10#$(ls $1/ckpt | tail -n 1 | cut -d- -f2)))
	expect 0 heddle ckpt diff $1-one $1
}
pid_in() { heddle status $1 --json | grep -o "\"worker\":$2,[^}]*\"pid\":[1-9][0-9]*" | grep -o "[0-9]*$"; }
is_lost() { grep '"kind":"lost"' $1/events.ndjson | grep -q "\"worker\":$2,"; }
kill -9 $(pid_in killed 1) $(pid_in killed 2)
reach killed 20
expect 2 heddle scale killed 2
says 'a pipeline of this run has 3 devices'
expect 0 heddle scale killed 4
reach killed 30
kill -9 $!
reach killed 40
# the next one knows a process when that has called
await pid_in killed 0 >pid || failed "worker 0 has no process after a takeover"
at=$(step killed)
kill -9 $(cat pid)
await is_lost killed 0 || failed "worker 0 is not missed"
reach killed $((at + 3))
ends killed gpt
passed "two stages at once, the coordinator and a member killed, one more added: the bits of one device"

# one that takes over predicts, and cuts again, by what the start measured
"$HEDDLE_BIN" run gpt.yaml --out taken --workers 2 -s parallel.mode=auto -s parallel.schedule=1f1b \
	-s job.steps=1000000 -s workers.pace=20ms -s workers.detect=1s >taken.log 2>&1 &
reach taken 8
kill -9 $!
predicts() { grep -q "predicts by the costs that the run's start measured" taken/events.ndjson; }
await predicts
stopped() { heddle stop taken >/dev/null 2>&1; }
await stopped
ended() { heddle status taken --json | grep -qE '"state":"(stopped|done)"'; }
await ended
passed "a coordinator that took over has the costs of the one before"

# a worker holds parameters and slots of its stages alone; checkpoints and evaluations are gathered
cat >wide.yaml <<END
job: {name: wide, seed: 3, steps: 20}
model: {use: "builtin:mlp", args: {input: [1, 16, 16], hidden: [700, 600, 300, 200], classes: 10}}
data: {kind: synthetic, count: 90}
batch: {global: 26, virtual_nodes: 13}
optim: {kind: adamw, lr: 1e-3}
eval: {every: 8}
checkpoint: {every: 10 steps}
comm: {sync: stages}
END
train run wide.yaml --out wide-one --devices 1
one=$digest
for shape in 1f1b:3:1:1 zb-v:2:1:1 gpipe:4:1:2 1f1b:2:2:1; do
	IFS=: read -r schedule workers devices replicas <<<"$shape"
	train run wide.yaml --out wide-$schedule-$workers --workers $workers --devices $devices \
		-s parallel.schedule=$schedule -s parallel.stages=auto -s parallel.mode=pipeline \
		-s parallel.replicas=$replicas
	same "$digest" "$one" "$schedule over $workers workers, state by stages"
done
train run wide.yaml --out wide-off --workers 3 -s parallel.mode=pipeline -s parallel.schedule=gpipe \
	-s parallel.offload=stage
same "$digest" "$one" "gpipe over 3 workers, activations in a file"
grep -q ' OFF1.0 .* ON1.0 ' wide-off/plan/0001.plan || failed "the plan of workers has no OFF"
evals() { grep '"kind":"eval","step":[1-9]' $1/events.ndjson | grep -o '"loss":[^,]*'; }
cmp -s <(evals wide-one) <(evals wide-1f1b-3) ||
	failed "evaluations of state by stages are others"
passed "state by stages, activations in a file: the bits of one device, evaluations included"

# of two pipelines, those of a plan file, any one worker may go: each stage has another holder
# a fifth stands by, and is in the place of the first that goes before another is started
"$HEDDLE_BIN" run wide.yaml --out held --workers 5 -s parallel.mode=explicit \
	-s parallel.plan=wide-gpipe-4/plan/0001.plan -s job.steps=1000000 -s workers.pace=100ms \
	-s workers.detect=2s >held.log 2>&1 &
coordinator=$!
reach held 8
has_members() { heddle status held --json | grep -q '"members":5,'; }
await has_members || failed "no five workers before one is lost"
await grep -q '"kind":"stands_by"' held/events.ndjson || failed "no worker stands by"
spare=$(grep '"kind":"stands_by"' held/events.ndjson | grep -o 'worker [0-9]*' | cut -d' ' -f2 | tail -n 1)
heddle status held --json | grep -q "\"worker\":$spare,\"state\":\"member\".*\"stages\":0" ||
	failed "worker $spare does not stand by"
lost=$((spare == 1 ? 3 : 1))
for worker in $lost $((spare == 2 ? 4 : 2)); do
	await has_members || failed "no five workers before $worker is lost"
	at=$(step held)
	kill -9 $(pid_in held $worker)
	await is_lost held $worker || failed "worker $worker is not missed"
	reach held $((at + 3))
done
await has_members || failed "no five workers before the coordinator is lost"
at=$(step held)
kill -9 $coordinator
reach held $((at + 3))
ends held wide
! grep -E '"kind":"(restore|void)"' held/events.ndjson || failed "a checkpoint was read, or a change void"
grep -q 'file: 2 stages, 2 pipelines' held/plan/0001.plan || failed "the run does not begin by the file"
grep -q "\"stands_in\".*worker $spare, which stood by, takes the place of worker $lost\"" \
	held/events.ndjson ||
	failed "worker $spare does not take a place"
passed "state by stages: members of either pipeline and the coordinator killed, nothing is taken from disk"

# of workers that come by themselves one is lost for ever: one pipeline works by the lists of both, and the
# file is back with another worker
"$HEDDLE_BIN" run wide.yaml --out gone --workers 4 -s workers.start=others -s parallel.mode=explicit \
	-s parallel.plan=wide-gpipe-4/plan/0001.plan -s job.steps=1000000 -s workers.pace=20ms \
	-s workers.detect=60s >gone.log 2>&1 &
await test -e gone/job.resolved.json || failed "no run"
joins() { "$HEDDLE_BIN" worker --join gone --devices 1 -q >>gone.log 2>&1 & }
for k in 1 2 3 4; do
	joins
	last=$!
done
# a plan lies there before the steps that say its number
newest() { ls gone/plan/*.plan 2>/dev/null | tail -n 1; }
goes_by()       # CAUSE: of the newest plan
{
	local plan
	plan=$(newest)
	[ "$plan" ] && grep -q "^cause .*; file$1 pipeline" "$plan" &&
		grep -q "\"plan\":$((10#$(basename "$plan" .plan)))," gone/metrics.ndjson
}
await goes_by ': 2 stages, 2' || failed "no step by the file's lists"
kill -9 $last
await goes_by ', its 2 pipelines shared out to 1: 2 stages, 1' ||
	failed "no step of one pipeline by the lists of two"
was=$(newest)
joins
is_back() { [ "$(newest)" != "$was" ] && goes_by ': 2 stages, 2'; }
await is_back || failed "the file's lists are not back with a fourth worker"
! grep '"kind":"restore"' gone/events.ndjson || failed "a checkpoint was read"
ends gone wide
passed "a worker lost for ever: the lists of a file are shared out, and are back with another worker"

# a worker that has not the memory for a plan says so before it ends, whoever started it: its coordinator may
# have cut the stages again
sed 's/width: 16/width: 256/; s/layers: 1/layers: 4/; s/steps: 6}/steps: 100000}/
	s/every: 1 s/every: 9999 s/' gpt.yaml >broad.yaml
broad()         # buckets that do not follow times: the memory of a plan is that of the run, too
{
	heddle run broad.yaml --devices 1 -s parallel.mode=pipeline -s comm.sync=stages \
		-s comm.buckets=none "$@"
}
need()          # STAGES: MiB of the worker that takes most
{
	broad --workers $1 -s parallel.stages=$1 --dry-run 2>&1 | grep -o 'memory: [0-9]*' | cut -d' ' -f2 |
		sort -n | tail -n 1
}
room=$(($(need 2) - 1))         # more than the coordinator asks for, which counts no program
broad --workers 3 --out broad -s parallel.stages=3 -s workers.memory=${room}MiB >broad.log 2>&1 &
reach broad 2
expect 0 heddle scale broad -s parallel.stages=2
refused() { grep -q '"kind":"plan_refused".*workers.memory gives '$room.0 broad/events.ndjson; }
await refused
heddle stop broad >out 2>err || true
wait $! || true
passed "a worker that has no room for a plan says so"

# a checkpoint that takes long to read: the coordinator answers meanwhile, and says what it waits for
if has_failpoints; then
	HD_FAIL=co.restore:delay=11000 "$HEDDLE_BIN" run wide.yaml --out slow --workers 3 \
		-s parallel.mode=pipeline -s job.steps=1000000 -s workers.pace=20ms -s workers.detect=1s \
		>slow.log 2>&1 &
	reach slow 12
	kill -9 $(pid_in slow 1) $(pid_in slow 2)
	waits() { grep -q '"kind":"waits".*read and verified: [0-9]* s so far' slow/events.ndjson; }
	await waits
	expect 0 heddle status slow
	await grep -q '"kind":"restore"' slow/events.ndjson || failed "no checkpoint was read"
	reach slow $(($(step slow) + 3))
	ends slow wide
	passed "while a checkpoint is read for long the coordinator answers, and says what it does"
fi

# of one pipeline the first worker leaves: its substitute gets its stage, and nothing else moves
heddle run wide.yaml --out left --workers 3 -s parallel.mode=pipeline -s job.steps=1000000 \
	-s workers.pace=20ms >left.log 2>&1 &
reach left 4
expect 0 heddle stop left --worker 0
await grep -q '"kind":"fetched"' left/events.ndjson || failed "no state moves as a worker leaves"
reach left $(($(step left) + 3))
ends left wide
moved() { grep "\"kind\":\"$1\"" left/events.ndjson | grep -o '[0-9]* bytes of state.*"'; }
same "$(moved moves | wc -l):$(moved fetched | wc -l)" 1:1 "moves of state, said and done"
same "$(moved moves | cut -d, -f2)" ' to worker 3"' "whose state moves"
same "$(moved moves | cut -d' ' -f1)" "$(moved fetched | cut -d' ' -f1)" "bytes that move"
passed "a worker leaves, and its stage alone moves: $(moved fetched | cut -d' ' -f1) bytes"

expect 11 heddle run wide.yaml --workers 3 -s parallel.mode=pipeline -s workers.memory=4MiB --out no
says 'worker 0: the job needs'
expect 2 heddle run gpt.yaml --workers 3 -s parallel.stages=2 --out no
says 'use 2'
expect 2 heddle run gpt.yaml --workers 2 -s parallel.mode=pipeline -s comm.sync=sharded --out no
says 'use comm.sync: stages'
expect 2 heddle run wide.yaml --workers 2 -s comm.sync=sharded -s optim.kind=lamb --out no
says 'whose norms have several owners'
expect 2 heddle run gpt.yaml --workers 2 -s parallel.mode=pipeline -s batch.slices=2 --out no
says 'batch.slices'
expect 2 heddle run gpt.yaml --workers 2 --devices auto -s parallel.mode=pipeline --out no
says 'stages over workers need a number'
expect 0 heddle run gpt.yaml --workers 2 -s parallel.mode=pipeline --dry-run
says 'worker 1: 7 virtual nodes'
# of auto the plan that it would choose: stages of all virtual nodes, not a share of them of the whole model
expect 0 heddle run gpt.yaml --workers 2 -s parallel.mode=auto -s parallel.schedule=1f1b --dry-run
says 'plan: 1f1b, 2 stages: '
says 'worker 1: 7 virtual nodes'
expect 0 heddle run gpt.yaml --workers 3 -s parallel.mode=auto -s parallel.schedule=1f1b --dry-run --json
[ ! -e no ] && [ ! -e runs ] || failed "a refused run left a folder"
passed "what does not go together is refused before anything is started"
