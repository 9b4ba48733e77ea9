#!/bin/bash
# Habits of training: means of parameters, evaluated and exported, with the bits of one device.
. "$(dirname "$0")/program.sh"
write_jobs 10
sed -i 's/keep: 2}/keep: 2, best: val_loss}/; s/lr: 1e-2/lr: 0.1/' mlp.yaml
echo 'eval: {every: 2, weights: ema}' >>mlp.yaml
# a boundary that another worker takes up, after a loss that may be none on a busy machine, is said again
losses() { grep '"kind":"eval"' "$1/events.ndjson" | sed 's/.*"loss":\([0-9.e+-]*\).*/\1/' | uniq; }
exact() { number loss_hex; }

train run mlp.yaml --out one --devices 1
one=$digest
losses one >one.evals
[ "$(wc -l <one.evals)" = 5 ] || failed "evaluations: $(cat one.evals)"
expect 0 heddle eval one --json
own=$(exact)
expect 0 heddle eval one --ema --json
means=$(exact)
[ "$own" != "$means" ] || failed "means and parameters have one loss"
same "$(printf %.6g "$(number loss)")" "$(printf %.6g "$(tail -n 1 one.evals)")" "a run evaluates its means"
expect 0 heddle run mlp.yaml --out params --devices 1 -q -s eval.weights=params
losses params | cmp -s - one.evals && failed "eval.weights changes nothing"
expect 0 heddle ckpt digest params
says "$one"
# what is exported is what is evaluated: it begins a run that stands still
expect 0 heddle ckpt export one --ema -o means.safetensors
expect 0 heddle run mlp.yaml --out still --devices 1 -q -s model.weights=means.safetensors -s optim.lr=0 \
	-s job.steps=1
expect 0 heddle eval still --json
same "$(exact)" "$means" "means that were exported"
expect 0 heddle model export one --ema --names heddle -o model.safetensors
expect 0 heddle run mlp.yaml --out again --devices 1 -q -s model.weights=model.safetensors -s optim.lr=0 \
	-s job.steps=1
expect 0 heddle eval again --json
same "$(exact)" "$means" "means of model export"
passed "means are evaluated and exported"

for by in --best '--best --ema'; do
	expect 0 heddle ckpt export one $by -o a.safetensors
	expect 0 heddle ckpt export one/ckpt/best ${by#--best} -o b.safetensors
	cmp -s a.safetensors b.safetensors || failed "$by exports another state"
	expect 0 heddle eval one $by --json
	there=$(exact)
	expect 0 heddle eval one/ckpt/best ${by#--best} --json
	same "$(exact)" "$there" "eval $by"
	expect 0 heddle predict one $by -o "p$RANDOM.npy" -q
done
expect 0 heddle run lenet.yaml --out plain --devices 1 -q
for verb in 'eval plain' 'predict plain' 'ckpt export plain -o no' 'model export plain -o no.safetensors'; do
	expect 11 heddle $verb --ema
	says 'optim.ema.decay'
	expect 3 heddle $verb --best
	says 'has no best state'
done
passed "--best and --ema say which state"

train run mlp.yaml --out three --workers 3 --devices 1
same "$digest" "$one" "3 workers"
losses three | cmp - one.evals || failed "3 workers evaluate something else"
for by in sharded stages; do
	train run mlp.yaml --out "by-$by" --workers 3 --devices 1 -s comm.sync=$by -s eval.weights=params \
		-s parallel.mode=$([ $by = stages ] && echo pipeline || echo given)
	same "$digest" "$one" "comm.sync: $by"
	expect 0 heddle eval "by-$by" --ema --json
	same "$(exact)" "$means" "means of comm.sync: $by"
done
expect 2 heddle run mlp.yaml --out no --workers 3 -s comm.sync=sharded
says 'eval.weights: ema evaluates where all means are'
passed "three workers, however the state lies, have the same means"

# the rate falls by the loss on split valid, and the job is done long before its last step
cat >stops.yaml <<'END'
job: {name: stops, seed: 5, steps: 400}
model: {use: "builtin:mlp", args: {input: [1, 6, 6], hidden: [24], classes: 4}}
data: {kind: synthetic, count: 90}
batch: {global: 26, virtual_nodes: 13}
optim:
  {kind: sgd, lr: 1, schedule: {kind: plateau, warmup: 0, every: 4, patience: 0, factor: 0.5, threshold: 0.2}}
stop: {patience: 2, every: 5, min_delta: 0.05}
checkpoint: {every: 3 steps, keep: 2}
eval: {every: 0}
END
train run stops.yaml --out stops --devices 1
stops=$digest steps=$(number step)
[ "$steps" -gt 10 ] && [ "$steps" -lt 100 ] || failed "it takes $steps steps"
judged() { grep '"kind":"judged"' "$1/events.ndjson" | sed 's/.*"text":"\(.*\)".*/\1/' | uniq; }
judged stops >judged
grep -q 'the rate falls' judged || failed "no fall of the rate"
grep -q "^step $steps: .* the job is done (stop.patience)" judged || failed "no word on the end"
train run stops.yaml --out loss --devices 1 -s optim.schedule.metric=loss -s stop.metric=loss
[ "$digest" != "$stops" ] || failed "the metric changes nothing"
for run in stops loss; do
	before=$(heddle ckpt digest $run)
	train resume $run --devices 2
	same "$digest" "$before" "$run, resumed when it is done"
done
train run stops.yaml --out paused --devices 2 --steps 7
train resume paused --devices 5
same "$digest" "$stops" "resumed between two looks"
passed "a run whose metric gets no better falls and stops, and goes on as it would have"

train run stops.yaml --out stops-3 --workers 3 --devices 1
same "$digest" "$stops" "3 workers"
judged stops-3 | cmp - judged || failed "3 workers judge otherwise"
if has_failpoints; then
	for at in gate.boundary:kill@8 co.commit:kill@9; do
		run=dies-${at%%:*}
		mkdir -p "$run/chaos"
		chmod 700 "$run" "$run/chaos"
		echo "$at" >"$run/chaos/any"
		heddle run stops.yaml --out "$run" --workers 3 --devices 1 -s 'workers.detect=20 s' -q >out \
			2>err
		await test -f "$run/ckpt/step-$(printf %09d "$steps")/MANIFEST.json" ||
			failed "$run did not end"
		[ -n "$(find "$run/chaos" -name 'hit.*')" ] || failed "$at was not reached"
		same "$(heddle ckpt digest "$run")" "$stops" "$at"
	done
	passed "so do three workers, of which one dies, and the coordinator"
fi
