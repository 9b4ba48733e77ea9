#!/bin/bash
# Losses and metrics: what evaluations say and keep is the same whatever computes, dies and goes on.
. "$(dirname "$0")/program.sh"
cat >job.yaml <<'END'
job: {name: job, seed: 5, steps: 12}
model: {use: "builtin:mlp", args: {input: [1, 6, 6], hidden: [24], classes: 4}}
loss: {smoothing: 0.1, class_weights: [0.5, 1, 2, 1.5], ignore: 3}
data: {kind: synthetic, count: 90}
batch: {global: 26, virtual_nodes: 13}
optim:
  {kind: sgd, lr: 0.3, schedule: {kind: plateau, metric: val_auroc, warmup: 0, every: 3, patience: 0}}
eval: {every: 2, metrics: [f1-macro, top-2]}
stop: {patience: 9, metric: val_recall-macro, every: 4}
checkpoint: {best: val_f1-macro, every: 4 steps, keep: 2}
log: {tensorboard: true}
END
shown() { grep '"kind":"eval"' "$1/events.ndjson" | sed 's/.*"step":\([0-9]*\).*"loss"/\1 "loss"/' | uniq; }

train run job.yaml --out one --devices 1
one=$digest
shown one >one.evals
[ "$(wc -l <one.evals)" = 6 ] || failed "evaluations: $(cat one.evals)"
grep -q '"f1-macro":[01].*"auroc":[01]' one.evals || failed "no metrics: $(cat one.evals)"
expect 0 heddle eval one --best --json
best=$(number f1-macro)
expect 0 heddle status one
says "best     val_f1-macro $(printf %.6g "$best")"
expect 0 heddle eval one
says '  top-2 '
grep -q 'f1-macro 0\.' one/report.html || failed "the report has no metric"
cat one/events.out.tfevents.* | grep -aq 'eval_valid/f1-macro' || failed "TensorBoard has no metric"
train run job.yaml --out plain --devices 1 -s loss.smoothing=0
[ "$digest" != "$one" ] || failed "smoothing changes nothing"
passed "metrics are shown, and the best is kept by one of them"

for by in '--workers 3' '--workers 3 -s parallel.mode=pipeline'; do
	run=run${by//[^a-z0-9]/}
	train run job.yaml --out "$run" $by --devices 1
	same "$digest" "$one" "$by"
	shown "$run" | cmp - one.evals || failed "$by evaluates something else"
	cat "$run"/events.out.tfevents.* | grep -aq "eval_valid/f1-macro" ||
		failed "$by: TensorBoard has no metric"
done
if has_failpoints; then
	mkdir -p dies/chaos
	chmod 700 dies dies/chaos
	echo gate.boundary:kill@5 >dies/chaos/any
	heddle run job.yaml --out dies --workers 3 --devices 1 -s 'workers.detect=20 s' -q >out 2>err
	await test -f dies/ckpt/step-000000012/MANIFEST.json || failed "it did not end"
	[ -n "$(find dies/chaos -name 'hit.*')" ] || failed "none died"
	same "$(heddle ckpt digest dies)" "$one" "a worker died"
fi
passed "three workers, stages, and a loss of one have the same"

# several losses, each with a figure of its own
sed -e '/^loss:/d; /^eval:/d; /^stop:/d; /^checkpoint:/d; /plateau/d; /^optim:/d' job.yaml >sum.yaml
cat >>sum.yaml <<'END'
loss: [{kind: cross-entropy}, {kind: cross-entropy, smoothing: 0.3, weight: 0.5}]
optim: {kind: sgd, lr: 0.3}
eval: {every: 6}
END
terms() { grep -o '"step":[0-9]*\|"loss[_0-9]*":[^,]*' "$1/metrics.ndjson"; }
train run sum.yaml --out sum1 --devices 1
sum=$digest
terms sum1 >sum.terms
[ "$(grep -c loss_2 sum.terms)" = 12 ] || failed "terms: $(cat sum.terms)"
grep '"kind":"eval"' sum1/events.ndjson | grep -q '"loss_1":.*"loss_2"' || failed "an evaluation has no terms"
grep -q '<h2>Loss 2' sum1/report.html || failed "the report has no terms"
for n in 2 3 5; do
	train run sum.yaml --out "sum$n" --devices $n
	same "$digest" "$sum" "a sum on $n devices"
	terms "sum$n" | cmp - sum.terms || failed "other terms on $n devices"
done
for by in '--workers 3' '--workers 3 -s parallel.mode=pipeline'; do
	run=sum${by//[^a-z0-9]/}
	train run sum.yaml --out "$run" $by --devices 1
	same "$digest" "$sum" "a sum, $by"
	terms "$run" | cmp - sum.terms || failed "other terms, $by"
done
passed "several losses have the same terms on devices, workers and in stages"

# classes become shares where the loss that reads them wants shares, whichever place it has
if command -v python3 >/dev/null; then
	python3 - <<'END'
import os, struct
def npy(name, descr, shape, body):
    head = ("{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)).encode()
    head += b" " * (63 - (10 + len(head)) % 64) + b"\n"
    open("mix/" + name, "wb").write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + body)
os.mkdir("mix")
npy("x.npy", "<f4", (90, 1, 6, 6), b"".join(struct.pack("<f", i * 37 % 101 / 50 - 1)
    for i in range(90 * 36)))
npy("y.npy", "<i4", (90,), b"".join(struct.pack("<i", i * 7 % 4) for i in range(90)))
npy("teacher.npy", "<f4", (90, 4), b"".join(struct.pack("<f", i * 29 % 31 / 15 - 1) for i in range(360)))
END
	sed 's/^loss:.*//; s/^data:.*/data: {kind: npy, path: mix}/; s/^eval:.*//; s/^stop:.*//; s/^log:.*//;
		s/^checkpoint:.*//; s/plateau.*/constant}}/' job.yaml >mix.yaml
	mse='{kind: mse, target: teacher}' soft='{kind: soft-cross-entropy}'
	train run mix.yaml --out first --devices 1 -s "loss=[$soft, $mse]"
	soft_first=$digest
	train run mix.yaml --out last --devices 1 -s "loss=[$mse, $soft]"
	same "$digest" "$soft_first" "two losses the other way round"
	expect 2 heddle run mix.yaml --out no -q -s 'data.augment=[mixup]' \
		-s "loss=[{kind: cross-entropy}]"
	! grep ':0:0' err || failed "an option has no line"
	passed "what becomes shares does not depend on the order of losses"
fi

refused() { expect "$1" heddle run job.yaml --out no -q "${@:3}"; says "$2"; }
refused 2 'loss.class_weights has 2 numbers, the model 4 outputs' -s 'loss.class_weights=[1, 2]'
refused 2 'loss.smoothing' -s loss.smoothing=-1
refused 2 'f1-binary is of two classes, the model tells 4' -s 'eval.metrics=[f1-binary]'
refused 2 'val_r2, which a model with model.loss cross-entropy does not have' -s checkpoint.best=val_r2
passed "what fits no model is refused"
