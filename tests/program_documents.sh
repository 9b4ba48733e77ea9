#!/bin/bash
# Documents packed into samples, kept apart by attention: what each would be alone, on any devices.
. "$(dirname "$0")/program.sh"
command -v python3 >/dev/null || { echo "skip: no python3 to write documents"; exit 77; }
python3 - <<'END' || failed "documents"
import os, random, struct
random.seed(7)
docs = [[random.randrange(16) for _ in range(random.randrange(2, 9))] for _ in range(40)]
tokens, begin = [], [0]
for d in docs:
    tokens += d
    begin.append(len(tokens))
with open("t.bin", "wb") as f:
    f.write(struct.pack("<256i", 20240520, 1, len(tokens), *[0] * 253))
    f.write(struct.pack(f"<{len(tokens)}H", *tokens))
with open("t.at", "wb") as f:
    f.write(struct.pack(f"<{len(begin)}Q", *begin))

def npy(name, rows):
    head = "{'descr': '<i4', 'fortran_order': False, 'shape': (%d, %d), }" % (len(rows), len(rows[0]))
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    with open(name, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        for r in rows:
            f.write(struct.pack(f"<{len(r)}i", *r))

os.mkdir("alone")
fill = lambda d, to, pad: d + [pad] * (to - len(d))
npy("alone/x.npy", [fill(d, 12, 0) for d in docs])
npy("alone/y.npy", [fill(d[1:], 12, -1) for d in docs])
npy("alone/document_ids.npy", [fill([1] * len(d), 12, 0) for d in docs])
npy("alone/attention_mask.npy", [fill([1] * len(d), 12, 0) for d in docs])
npy("alone/position_ids.npy", [fill(list(range(len(d))), 12, 0) for d in docs])
END

job()        # NAME MODEL INPUTS
{
	cat >"$1.yaml" <<END
job: {name: $1, seed: 3, steps: 6}
model: {use: "builtin:$2, args: {layers: 2, width: 16, heads: 2, context: 12, vocab: 16, inputs: [$3]}}
data: {kind: tokens, path: t.bin, boundaries: t.at, pack: fit, split: {train: 1, valid: 0}}
batch: {global: 10, virtual_nodes: 5, last: wrap}
optim: {kind: adamw, lr: 1e-2}
checkpoint: {every: 2 steps}
eval: {every: 0}
END
}
job gpt 'gpt"' 'document_ids, position_ids'
job llama 'llama"' document_ids
for model in gpt llama; do
	train run $model.yaml --out ${model}1 --devices 1
	one=$digest
	for n in 2 3 5; do
		train run $model.yaml --out $model$n --devices $n
		same "$digest" "$one" "$model on $n devices"
	done
	train run $model.yaml --out ${model}w --workers 3 --devices 1 -s parallel.mode=pipeline
	same "$digest" "$one" "$model in stages"
	eval "$model=$one"
done
train run gpt.yaml --out across --devices 1 -s 'model.args.inputs=[position_ids]'
[ "$digest" != "$gpt" ] || failed "documents see each other"
passed "attention inside documents has the same bits on devices and in stages"

"$HEDDLE_BIN" run gpt.yaml --out three --workers 3 --devices 1 -q -s workers.pace=200ms >log 2>&1 &
run=$!
reach three 2
kill -9 "$(heddle status three --json | grep -o '"pid":[0-9]*' | tail -n 1 | cut -d: -f2)" 2>/dev/null
wait $run || failed "3 workers, one killed: $(tail -n 3 log)"
expect 0 heddle ckpt digest three
says "$gpt"
passed "the same on three workers, one of which is killed"

# each document by itself in a sample, with the parameters of the run
for model in gpt llama; do
	expect 0 heddle predict ${model}1 --split train -o packed.npy
	train run $model.yaml --out ${model}alone -s data.kind=npy -s data.path=alone \
		-s data.boundaries=none -s data.pack=none -s job.steps=1 -s optim.kind=sgd -s optim.lr=0 \
		-s model.weights=${model}1 -s batch.last=drop
	expect 0 heddle predict ${model}alone --split train -o alone.npy
	expect 0 heddle data cat $model.yaml --split train --count 100
	cp out samples
	python3 - <<'END' || failed "$model: a packed document is another than alone"
import json, struct
def read(name):
    raw = open(name, "rb").read()
    head = raw[10:10 + struct.unpack("<H", raw[8:10])[0]].decode()
    shape = eval(head)["shape"]
    return shape, struct.unpack(f"<{shape[0] * shape[1] * shape[2]}f", raw[10 + len(head):])
(np, t, v), packed = read("packed.npy")
(na, _, _), alone = read("alone.npy")
begin = struct.unpack("<41Q", open("t.at", "rb").read())
raw = open("t.bin", "rb").read()[1024:]
docs = [list(struct.unpack(f"<{b - a}H", raw[2 * a:2 * b])) for a, b in zip(begin, begin[1:])]
found, far = 0, 0
for n, line in enumerate(open("samples")):
    s = json.loads(line)
    for piece in range(1, max(s["document_ids"]) + 1):
        at = [i for i, d in enumerate(s["document_ids"]) if d == piece]
        assert at == list(range(at[0], at[0] + len(at))), s
        d = docs.index([s["x"][i] for i in at])
        for j, i in enumerate(at):
            for c in range(v):
                far = max(far, abs(packed[(n * t + i) * v + c] - alone[(d * t + j) * v + c]))
        found += 1
assert found == 40 and far < 1e-5, (found, far)
END
done
passed "a packed document has the outputs that it has alone"

# of one document in a sample both say the same: what fills it up takes no room and is not counted
for by in document_ids attention_mask; do
	sed "s/llama\", args: {/mixtral\", args: {hidden: 12, experts: 4, capacity: 0.5, balance: 0.3, /
		s/^data:.*/data: {kind: npy, path: alone, split: {train: 1, valid: 0}}/
		s/document_ids/$by/" llama.yaml >mixtral-$by.yaml
	train run mixtral-$by.yaml --out mixtral-$by --devices 1
	[ $by = document_ids ] || same "$digest" "$(heddle ckpt digest mixtral-document_ids)" "experts by $by"
done
passed "what fills a sample up goes to no expert"

expect 2 heddle run gpt.yaml --out bad -q -s 'model.args.inputs=[document_ids]'
says 'document_ids goes with position_ids'
expect 2 heddle run llama.yaml --out bad -q -s 'model.args.inputs=[document_ids, attention_mask]'
says 'document_ids goes without attention_mask'
expect 3 heddle run llama.yaml --out bad -q -s data.pack=none -s data.boundaries=none
says 'the graph reads an input "document_ids"; the data have no such field'
passed "what has no documents is refused"
