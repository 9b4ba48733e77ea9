#!/bin/bash
# parallel: a model in stages over the devices of a process, with the bits of one device.
. "$(dirname "$0")/program.sh"
write_jobs 6

# JOB: what one device makes of it
for job in mlp lenet resnet18 inception gpt llama bert bert_cls lstm; do
	train run $job.yaml --out $job-one --devices 1 -s trace.digest=1
	one=$digest
	for shape in 1f1b:2:1 gpipe:3:1 zb-h1:2:1 1f1b:4:2; do
		IFS=: read -r schedule devices replicas <<<"$shape"
		train run $job.yaml --out $job-$schedule-$devices --devices $devices \
			-s parallel.mode=pipeline -s parallel.schedule=$schedule \
			-s parallel.replicas=$replicas -s trace.digest=1
		same "$digest" "$one" "$job: $schedule on $devices devices"
		expect 0 heddle ckpt diff $job-one $job-$schedule-$devices
		cmp -s <(grep -o '"digest":"[^"]*"' $job-one/metrics.ndjson) \
			<(grep -o '"digest":"[^"]*"' $job-$schedule-$devices/metrics.ndjson) ||
			failed "$job: $schedule on $devices devices has other digests on the way"
	done
done
passed "nine models: gpipe, 1f1b and zb-h1 on 2, 3 and 2 x 2 devices"

train run gpt.yaml --out gpt-whole --devices 1
whole=$digest
for schedule in gpipe 1f1b interleaved zb-h1 zb-h2 zb-auto zb-v v-half v-min dualpipev; do
	train run gpt.yaml --out by-$schedule --devices 2 -s parallel.mode=pipeline \
		-s parallel.schedule=$schedule
	same "$digest" "$whole" "$schedule"
	train run gpt.yaml --out re-$schedule --devices 2 -s parallel.mode=pipeline \
		-s parallel.schedule=$schedule -s parallel.recompute=stage
	same "$digest" "$whole" "$schedule with recomputation"
	train run gpt.yaml --out off-$schedule --devices 2 -s parallel.mode=pipeline \
		-s parallel.schedule=$schedule -s parallel.offload=stage
	same "$digest" "$whole" "$schedule with activations in a file"
	grep -q ' OFF0.0 .* ON0.0 ' off-$schedule/plan/0000.plan || failed "$schedule: the plan has no OFF"
	for verb in show check draw; do
		expect 0 heddle plan $verb by-$schedule/plan/0000.plan
	done
done
passed "every schedule of flush updates, with and without recomputation, with activations in a file"

grep -q '^cuts 0 ' by-1f1b/plan/0000.plan || failed "the plan does not say where stages begin"
grep -q 'cause "1f1b: 2 stages, 1 pipeline of 2 devices' by-1f1b/plan/0000.plan || failed "no cause"
train run gpt.yaml --out by-file --devices 2 -s parallel.mode=explicit -s parallel.plan=by-zb-v/plan/0000.plan
same "$digest" "$whole" "the plan file of another run"
passed "an adopted plan lies in the run's folder, and another run takes it"

# measured and chosen, whatever it is: the bits of one device, and what was predicted before the first step
train run gpt.yaml --steps 3 --out chosen --devices 2 -s parallel.mode=auto
expect 0 test -s chosen/plan/0000.predicted.json
cp chosen/plan/0000.plan first.plan
train resume chosen --devices 2
same "$digest" "$whole" "a plan by measured costs"
expect 0 cmp first.plan chosen/plan/0000.plan
[ ! -e chosen/plan/0001.plan ] || failed "a resumed run on as many devices has another plan"
train run gpt.yaml --out chosen-deep --devices 3 -s parallel.mode=auto -s parallel.schedule=zb-h1
same "$digest" "$whole" "stages by measured costs"
# where the stages begin is measured: the last may have the loss alone, and nothing to do in W
for op in '"F","stage":2' '"W","stage":[0-2]'; do
	grep -q "\"op\":$op,\"count\":[0-9]*,\"predicted_ms\":[0-9.e-]*,\"measured_ms\":[0-9.e-]*," \
		chosen-deep/plan/0000.measured.json || failed "no measured $op"
done
expect 0 heddle run gpt.yaml --steps 2 --out said --devices 2 -s parallel.mode=pipeline --json --explain
for name in predicted_ms measured_ms least_ms; do
	[ "$(number $name)" != null ] || failed "--json: $name is null"
done
expect 0 heddle run gpt.yaml --steps 2 --out unsaid --devices 2 --json
same "$(number predicted_ms)$(number measured_ms)" nullnull "what was not measured is not predicted"
expect 0 heddle resume said --devices 2 --steps 3 --replan
expect 0 heddle run gpt.yaml --devices 2 -s parallel.mode=auto --dry-run
grep -q 'plan: data parallel: ' err || failed "auto does not say what it chose"
passed "parallel.mode auto measures, predicts, chooses and keeps its plan"

# a stage is left for another depth, another schedule and no stages at all, at any step
for at in 1 2 3 4 5; do
	train run gpt.yaml --steps $at --out gpt-$at --devices 3 -s parallel.mode=pipeline
	case $at in
	1|4) train resume gpt-$at --devices 2 -s parallel.schedule=zb-v ;;
	2) train resume gpt-$at --devices 1 -s parallel.mode=data ;;
	*) train resume gpt-$at --devices 4 -s parallel.schedule=gpipe -s parallel.stages=2 ;;
	esac
	same "$digest" "$whole" "resumed at step $at in another shape"
done
train run gpt.yaml --steps 3 --out plain --devices 2
train resume plain --devices 3 -s parallel.mode=pipeline
same "$digest" "$whole" "a run without stages goes on with three"
passed "any shape resumes from any other, at any step"

# killed at any instant
has_saved() { [ "$(ls killed/ckpt 2>/dev/null | grep -c '^step-')" -ge 2 ]; }
"$HEDDLE_BIN" run gpt.yaml --out killed --devices 3 -s parallel.mode=pipeline -s job.steps=100000 \
	-q 2>/dev/null &
run=$!
await has_saved || failed "no checkpoint"
kill -9 $run
wait $run 2>/dev/null
end=$((10#$(ls killed/ckpt | grep '^step-' | tail -n 1 | cut -d- -f2) + 5))
expect 0 heddle resume killed --devices 2 -s parallel.schedule=1f1b --steps $end -q
train run gpt.yaml --out undisturbed --devices 1 -s job.steps=100000 --steps $end
expect 0 heddle ckpt diff undisturbed killed
passed "a run that was killed goes on with other stages"

# verbs that do not train run the whole model, on any number of devices
expect 0 heddle eval by-1f1b --devices 1 --json
by_one=$(cat out)
expect 0 heddle eval gpt-whole --devices 1 --json
same "$by_one" "$(cat out)" "the evaluation of a run in stages"
expect 0 heddle predict by-1f1b --devices 1 --prompt "1 2" -q
expect 0 heddle profile gpt.yaml --devices 1 -s parallel.mode=pipeline -o gpt-profile.json
expect 0 heddle bench op gpt.yaml -s parallel.mode=pipeline
expect 2 heddle plan gpt.yaml --profile gpt-profile.json -n 2 -s parallel.replicas=2 --planner pipedream
says replicas
passed "evaluation, prediction and profiles of a job with stages need no stages"

# words for what does not go together
expect 2 heddle run gpt.yaml --devices 3 -s parallel.mode=pipeline -s parallel.stages=2 --out no
says '3 devices are no 1 pipeline of 2: use 2'
expect 2 heddle run gpt.yaml --devices 1 -s parallel.mode=pipeline --out no
says 'no pipeline'
expect 2 heddle run gpt.yaml --devices 2 -s parallel.schedule=zb-v -s parallel.stages=3 --out no
says 'use a multiple of 2'
expect 2 heddle run gpt.yaml --devices 2 -s parallel.schedule=data-parallel --out no
says 'parallel.mode: data'
expect 11 heddle run gpt.yaml --devices 2 -s parallel.mode=pipeline -s batch.slices=2 --out no
says 'batch.slices'
sed 's/^0: .*/0: NORM/' by-1f1b/plan/0000.plan >broken.plan
expect 2 heddle run gpt.yaml --devices 2 --plan broken.plan --out no
expect 2 heddle plan check broken.plan
says refused
[ ! -e no/ckpt ] || failed "a refused run left checkpoints"
passed "what does not go together is refused with what would"
