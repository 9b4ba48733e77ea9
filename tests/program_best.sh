#!/bin/bash
# checkpoint.best: the state of the best evaluation is kept, the same one whatever computes, dies and goes on.
. "$(dirname "$0")/program.sh"
write_jobs 14
sed -i 's/lr: 1e-2/lr: 0.3/; s/every: 1 steps, keep: 2/every: 3 steps, keep: 2, best: val_loss/' mlp.yaml
echo 'eval: {every: 1}' >>mlp.yaml
kept() { expect 0 heddle ckpt digest "$1/ckpt/best"; cat out; }

# the oracle: the first least loss of the lines of evaluations
train run mlp.yaml --out whole --devices 1
grep '"kind":"eval"' whole/events.ndjson | sed 's/.*"step":\([0-9]*\).*"loss":\([0-9.e+-]*\).*/\1 \2/' >evals
read -r best loss < <(sort -s -g -k2,2 evals | head -n 1)
[ "$(wc -l <evals)" = 14 ] && [ "$best" -gt 3 ] && [ "$best" -lt 14 ] ||
	failed "the run shows nothing: best at step $best"
same "$(number best_step)" "$best" "what the end says"
same "$(ls whole/ckpt/best)" "$(printf 'step-%09d' "$best")" "what is kept"
train run mlp.yaml --out until --devices 1 --steps "$best"
until=$digest
first=$(kept whole)
same "$first" "$until" "the state that is kept, and a run that ends there"
expect 0 heddle eval whole/ckpt/best --json
same "$(printf %.6g "$(number loss)")" "$(printf %.6g "$loss")" "its loss"
expect 0 heddle eval "whole/ckpt/best/step-$(printf %09d "$best")" --json
same "$(number step)" "$best" "by the folder of the checkpoint itself"
expect 0 heddle status whole
says "best     val_loss $(printf %.6g "$loss") at step $best"
expect 0 heddle ckpt ls whole --json
same "$(wc -l <out)" 2 "the others are listed without it"
for i in {1..40}; do echo "$((i * 37 % 101)),$((i * 53 % 97)),$((i % 2))"; done | sed '1i a,b,y' >t.csv
sed -e 's/input: .*/input: [2], hidden: [4], classes: 2}}/' \
	-e 's/^data: .*/data: {kind: csv, path: t.csv, split: {train: 1, valid: 0}}/' mlp.yaml >all.yaml
expect 2 heddle run all.yaml --out no
says 'checkpoint.best: val_loss: the data have no samples in a split "valid"'
expect 2 heddle run all.yaml --out no --workers 2 --devices 1
says 'split "valid"'
passed "the best is kept: value, state, end, status, eval"

for by in '--workers 3' '--workers 2 -s parallel.mode=pipeline -s comm.sync=stages'; do
	run=run${by//[^a-z0-9]/}
	train run mlp.yaml --out "$run" $by --devices 1
	same "$(number best_step)" "$best" "$by: what the end says"
	same "$(kept "$run")" "$first" "$by"
done
# two buckets, of which the writer has no slots of one; it gathers them for the best, at a step without a
# checkpoint, too
sed -e 's/input: \[1, 6, 6\], hidden: \[24\]/input: [1, 20, 20], hidden: [400, 300]/; s/steps: 14/steps: 4/' \
	-e 's/every: 3 steps/every: 100 steps/; s/lr: 0.3/lr: 0.5/' mlp.yaml >wide.yaml
train run wide.yaml --out wide --devices 1
[ "$(number best_step)" -lt 4 ] || failed "the end is the best: nothing is shown"
train run wide.yaml --out parts --workers 3 --devices 1 -s comm.sync=sharded
same "$(kept parts)" "$(kept wide)" "state in parts"
passed "three workers, state in parts and stages keep the same"

# of a graph the end tests the best state, here and by the process that started the workers
awk 'BEGIN {
	for (i = 0; i < 80; i++) {
		r = int(i / 10) * 10; print i, r + (i + 1) % 10; print i, r + (i + 3) % 10
	}
	for (i = 0; i < 80; i += 2) print i, (i + 17) % 80 }' >edges.txt
# labels that teach little: the loss on others soon grows, while more are guessed right
awk 'BEGIN { for (i = 0; i < 80; i++) print (i % 3 ? int(i / 10) : (i * 29 % 61) % 8), i ":1" }' >features.svm
awk 'BEGIN { printf "train"; for (i = 0; i < 80; i += 10) printf " %d", i; printf "\nval"
	for (i = 1; i < 80; i += 5) printf " %d", i; printf "\ntest"
	for (i = 2; i < 80; i++) if (i % 5 > 1) printf " %d", i; print "" }' >split.txt
expect 0 heddle data prepare-graph --edges edges.txt --features features.svm --split split.txt -o g.graph \
	--intervals 2 --splitter own -q
cat >gcn.yaml <<END
job:   {name: gcn, seed: 3, steps: 30, kernels: portable}
model: {use: "builtin:gcn", args: {input: 80, classes: 8, slots: 6, hidden: 16, dropout: 0.3}}
data:  {kind: graph, path: g.graph, order: sequential}
batch: {global: 80, virtual_nodes: 2}
optim: {kind: adam, lr: 0.1, clip: 0, schedule: {kind: constant, warmup: 0}}
eval:  {every: 1}
checkpoint: {best: val_loss}
END
train run gcn.yaml --out graph --devices 1
cp out end
[ "$(number best_step)" -lt 30 ] || failed "the end is the best: nothing is shown"
accuracy=$(number test_accuracy)
expect 0 heddle eval graph/ckpt/best --split test --json
same "$(number accuracy)" "$accuracy" "the test of the best state"
expect 0 heddle eval graph --split test --json
[ "$(number accuracy)" != "$accuracy" ] || failed "the end gets as much right as the best: nothing is shown"
train run gcn.yaml --out graph-2 --workers 2 --devices 1
same "$(number test_accuracy)" "$accuracy" "the same over workers"
same "$(number best_step)" "$(sed -n 's/.*"best_step":\([0-9]*\).*/\1/p' end)" "its step"
passed "what is tested at the end of a run on a graph is the best state"

if has_failpoints; then
	# a process dies in each place of a save, in that of a best and of a checkpoint
	for at in ckpt.begin:kill@3 ckpt.write.after:kill@8 ckpt.manifest.after:kill@4 \
		ckpt.rename.before:kill@5 ckpt.rename.after:kill@3 ckpt.rename.after:kill@4 ckpt.gc:kill@2; do
		HD_FAIL=$at expect 137 heddle run mlp.yaml --out killed --devices 1 -q
		train resume killed --devices 2
		same "$(number best_step)" "$best" "$at, then resumed: step"
		same "$(kept killed)" "$first" "$at, then resumed"
		same "$(ls killed/ckpt/best | wc -l)" 1 "$at: folders of bests"
		rm -rf killed
	done
	passed "killed while it is kept, and resumed: the same"

	# of several workers the writer, before and after the best has its name; and the coordinator. Once
	for at in ckpt.rename.before:kill@4 ckpt.rename.after:kill@4 gate.boundary:kill@9 co.commit:kill@6; do
		run=dies-${at%%:*}
		mkdir -p "$run/chaos"
		chmod 700 "$run" "$run/chaos"
		echo "$at" >"$run/chaos/any"
		heddle run mlp.yaml --out "$run" --workers 3 --devices 1 -s workers.detect=20s -q >out 2>err
		await test -f "$run/ckpt/step-000000014/MANIFEST.json" || failed "$run did not end"
		[ -n "$(find "$run/chaos" -name 'hit.*')" ] || failed "$at was not reached"
		same "$(kept "$run")" "$first" "$at"
	done
	passed "the writer or the coordinator dies between two steps of a run: the same"
fi
