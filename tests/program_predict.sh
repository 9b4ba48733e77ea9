#!/bin/bash
# heddle predict: outputs as .npy, sampled text; the same on any devices.
. "$(dirname "$0")/program.sh"
write_jobs 6
train run mlp.yaml --out mlp
expect 0 heddle predict mlp --split train --devices 1 -o one.npy --json
says '"shape":[90,4]'
says '"classes":4'
expect 0 heddle predict mlp --split train --devices 3 -o three.npy
cmp -s one.npy three.npy || failed "outputs depend on the devices"
[ "$(stat -c %s one.npy)" -eq $((128 + 90 * 4 * 4)) ] || failed "the size of the .npy"
[ "$(head -c 8 one.npy | od -An -tx1 | tr -d ' ')" = 934e554d50590100 ] || failed "the magic of the .npy"
ls ./*.tmp >/dev/null 2>&1 && failed "a temporary file is left"
passed "outputs of a split are a .npy file, the same on any devices"

expect 0 heddle predict mlp
[ -s mlp/predictions.npy ] || failed "the default place"
python=$(command -v /opt/torchvenv/bin/python || command -v python3 || true)
if [ -n "$python" ] && "$python" -c 'import numpy' 2>/dev/null; then
"$python" - <<'END' || failed "numpy does not read it"
import numpy
a = numpy.load("one.npy")
assert a.shape == (90, 4) and a.dtype == "<f4" and numpy.isfinite(a).all()
END
	passed "numpy reads it"
fi

for i in $(seq 40); do echo "the quick brown fox jumps over the lazy dog"; done >text.txt
cat >text.yaml <<'END'
job: {name: text, seed: 1, steps: 8}
model: {use: "builtin:gpt", args: {layers: 1, width: 16, heads: 2, context: 16, vocab: 256}}
data: {kind: text, path: text.txt}
batch: {global: 8, virtual_nodes: 4}
END
train run text.yaml --out text
expect 0 heddle predict text --prompt "the " --tokens 40 --seed 7 --devices 1
[ "$(head -c 4 out)" = "the " ] || failed "the prompt comes first"
[ "$(wc -c <out)" -eq 45 ] || failed "as many tokens as asked for, and a line end"
cp out first
expect 0 heddle predict text --prompt "the " --tokens 40 --seed 7 --devices 3 --threads 2
cmp -s out first || failed "the text depends on the devices"
expect 0 heddle predict text --prompt "the " --tokens 40 --seed 8
cmp -s out first && failed "another seed gives the same text"
expect 0 heddle predict text --prompt "the " --tokens 10 --temperature 0
cp out cold
expect 0 heddle predict text --prompt "the " --tokens 10 --temperature 0 --seed 99
cmp -s out cold || failed "temperature 0 draws"
passed "sampled text is fixed by seed and prompt, on any devices"

expect 2 heddle predict text --prompt ""
says 'empty'
expect 2 heddle predict text --prompt x --temperature hot
says 'from 0 to'
expect 2 heddle predict mlp --prompt x
says 'models of text'
train run bert_cls.yaml --out cls
expect 2 heddle predict cls --prompt '1 2'
says 'this one gives f32 [*,3] for a whole text'
expect 0 heddle predict cls --split valid
train run gpt.yaml --out gpt
expect 0 heddle predict gpt --prompt "1 2 3" --tokens 4 --json
says '"sampled":['
expect 2 heddle predict gpt --prompt "1 99"
says 'outside the model'
passed "bad prompts are refused; tokens that are no text are numbers"
