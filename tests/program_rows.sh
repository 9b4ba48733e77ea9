#!/bin/bash
# heddle data convert, and jobs on rows and packed documents: equal bits on any devices and workers, and on
# copies in other kinds; a file that was changed is found.
. "$(dirname "$0")/program.sh"

digest()        # RUN
{
	heddle ckpt digest "$1" | head -1
}

for i in $(seq 1 60); do
	printf '{"f": [[%d, 0.%d], [-%d, 1e-%d]], "in": {"v": %d}, "label": %d}\n' "$i" "$i" $((i * i)) \
		$((i % 5)) $((i % 9)) $((i % 3))
done >rows.jsonl
cat >job.yaml <<'END'
job: {steps: 8}
model: {use: "builtin:mlp", args: {input: [5], hidden: [6], classes: 3}}
data: {kind: jsonl, path: rows.jsonl, columns: [f, in.v]}
batch: {global: 12, virtual_nodes: 6}
optim: {kind: adamw, lr: 1e-2}
END
expect 0 heddle run job.yaml -q --out one
expect 0 heddle run job.yaml -q --out three --devices 3
expect 0 heddle run job.yaml -q --out workers --workers 3
same "$(digest three)" "$(digest one)" "three devices"
same "$(digest workers)" "$(digest one)" "three workers"
passed "JSON Lines: equal bits on one device, three, and three workers"

mkdir x.npys.tmp
expect 0 heddle data convert job.yaml --to npy -o x.npys
says 'x.npys: 60 samples, 0.0 MB; data: {kind: npy, path: x.npys}'
expect 0 heddle data convert job.yaml --to records -o x.rec --json
json_ok
[ ! -e x.npys.tmp ] && [ ! -e x.rec.tmp ] || failed "something is left"
expect 0 heddle run job.yaml -q --out npy -s data.kind=npy -s data.path=x.npys -s 'data.columns=[]'
expect 0 heddle run job.yaml -q --out rec -s data.kind=records -s data.path=x.rec -s 'data.columns=[]'
same "$(digest npy)" "$(digest one)" "the copy as npy"
same "$(digest rec)" "$(digest one)" "the copy as records"
expect 3 heddle data convert job.yaml --to tokens -o none
says 'cannot be kept as tokens'
expect 2 heddle data convert job.yaml --to records -o x.rec
says 'x.rec is there already'
expect 2 heddle data convert job.yaml -o none
[ ! -e none ] && [ ! -e none.tmp ] || failed "something is left of what was refused"
passed "copies as npy and records have the same bits, splits and order"

{
	printf '{"added_tokens": [], "pre_tokenizer": {"type": "Whitespace"}, "model": {"type": "WordLevel",'
	printf ' "unk_token": "w0", "vocab": {"w0": 0, "w1": 1, "w2": 2, "w3": 3,'
	printf ' "w4": 4, "w5": 5, "w6": 6}}}'
} >t.json
for i in $(seq 1 80); do
	seq $((i % 11 + 1)) | awk -v i="$i" '{ printf "w%d ", (i + $1 * $1) % 7 } END { print "" }'
done >docs.txt
expect 0 heddle data tokenize --tokenizer t.json --lines docs.txt -o docs.bin --boundaries docs.at -q
cat >gpt.yaml <<'END'
job: {steps: 6}
model: {use: "builtin:gpt", args: {layers: 1, width: 16, heads: 2, context: 8, vocab: 7}}
data: {kind: tokens, path: docs.bin, boundaries: docs.at, pack: fit}
batch: {global: 12, virtual_nodes: 6}
optim: {kind: adamw, lr: 1e-2}
END
expect 0 heddle run gpt.yaml -q --out fit
expect 0 heddle run gpt.yaml -q --out fit2 --devices 2
same "$(digest fit2)" "$(digest fit)" "two devices"
expect 0 heddle data convert gpt.yaml --to tokens -o again.bin -s data.pack=none -s data.boundaries=none -q
expect 3 heddle data convert gpt.yaml --to tokens -o none
says 'no row of tokens that was cut up'
n=$(($(stat -c %s again.bin) - 1024))
cmp -n "$n" -i 1024 docs.bin again.bin || failed "other tokens"
passed "packed documents: equal bits on one device and two; tokens convert to themselves"

expect 0 heddle run job.yaml -q --out changed -s job.steps=4
sed -i '7s/"label": 1/"label": 2/' rows.jsonl
expect 5 heddle resume changed -q --steps 8
passed "another content is found by a run that goes on"
