#!/bin/bash
# heddle ckpt: list, show, verify, digest, diff, export, gc; each with its exit code.
. "$(dirname "$0")/program.sh"
write_jobs 6
sed -i 's/keep: 2/keep: 4/' mlp.yaml

expect 0 heddle run mlp.yaml -q --out one --devices 1
expect 0 heddle run mlp.yaml -q --out three --devices 3
expect 0 heddle run mlp.yaml -q --out other -s job.seed=4
newest=one/ckpt/step-000000006

expect 0 heddle ckpt ls one
same "$(grep -c step-00000000 out)" 4 "four checkpoints are kept"
expect 0 heddle ckpt ls one --json
same "$(wc -l <out)" 4 "one object a line"
same "$(number step)" 6 "the newest stands first"
passed "ckpt ls"

expect 0 heddle ckpt digest one
grep -qxE '[0-9a-f]{32}' out || failed "one hex line"
same "$(wc -l <out)" 1 "one line"
digest=$(cat out)
expect 0 heddle ckpt digest $newest
same "$(cat out)" "$digest" "run and checkpoint"
expect 0 heddle ckpt digest three
same "$(cat out)" "$digest" "one device and three"
passed "ckpt digest"

expect 0 heddle ckpt show one
says 'run.step'
says "$digest"
expect 0 heddle ckpt show one --json
says "\"digest\":\"$digest\",\"job_hash\""
expect 0 heddle ckpt verify one
says 'ok  '
expect 0 heddle ckpt verify one --json
says '"ok":true'
passed "ckpt show, ckpt verify"

expect 0 heddle ckpt diff one three
says 'IDENTICAL'
expect 5 heddle ckpt diff one other
says 'the job hash differs'
says 'DIFFERENT'
says 'max ulp'
expect 5 heddle ckpt diff $newest one/ckpt/step-000000005 --json
says '"identical":false'
expect 3 heddle ckpt diff one absent
expect 0 heddle ckpt diff $newest one/ckpt/step-000000005 --ulp 9223372036854775807
says 'NEAR ENOUGH'
expect 2 heddle ckpt diff one three --ulp 9223372036854775808
says '--ulp 9223372036854775808: 9223372036854775808 is more than 9223372036854775807'
passed "ckpt diff: 0, 5, 3"

expect 0 heddle ckpt export one --safetensors weights.safetensors
[ -s weights.safetensors ] || failed "no file"
expect 2 heddle ckpt export one
says '--safetensors'
python=/opt/torchvenv/bin/python
if [ -x $python ] && $python -c 'import safetensors.numpy' 2>/dev/null; then
	expect 0 $python - $newest/model.safetensors weights.safetensors $newest/optim.safetensors <<'END'
import json, struct, sys
import numpy
from safetensors.numpy import load_file
a, b = load_file(sys.argv[1]), load_file(sys.argv[2])
assert a and sorted(a) == sorted(b) and all((a[k] == b[k]).all() for k in a)
optim = load_file(sys.argv[3])
assert optim and all(k.rsplit(".", 1)[0] in a for k in optim)
raw = open(sys.argv[1], "rb").read()        # by hand, from the description of the format
n = struct.unpack("<Q", raw[:8])[0]
for name, row in json.loads(raw[8:8 + n]).items():
    if name != "__metadata__":
        low, high = row["data_offsets"]
        stored = numpy.frombuffer(raw[8 + n + low:8 + n + high], "<f4").reshape(row["shape"])
        assert numpy.array_equal(stored, a[name])
END
	passed "ckpt export; another reader finds the same values"
else
	passed "ckpt export (no other reader here: Python without safetensors)"
fi
(cd $newest && sed 's/.*"files":\[//' MANIFEST.json |
	grep -o '"name":"[^"]*","bytes":[0-9]*,"sha256":"[0-9a-f]*"' |
	sed 's/"name":"\([^"]*\)".*"sha256":"\(.*\)"/\2  \1/' | sha256sum -c --quiet) ||
		failed "sha256sum does not agree with the manifest"
passed "sha256sum agrees with the manifest"

expect 0 heddle ckpt gc one --count 2 --dry-run
says 'would remove 2'
expect 0 heddle ckpt gc one --count 2
same "$(echo $(ls one/ckpt))" "step-000000005 step-000000006" "gc keeps the newest"
passed "ckpt gc"

# the last byte of a file turned over
flip_last_bit() { size=$(stat -c %s "$1"); printf \
	"\\x$(printf %02x $((0x$(tail -c 1 "$1" | od -An -tx1 | tr -d ' ') ^ 1)))" |
	dd of="$1" bs=1 seek=$((size - 1)) conv=notrunc 2>/dev/null; }
flip_last_bit $newest/model.safetensors
expect 5 heddle ckpt verify $newest
says 'model.safetensors'
expect 3 heddle ckpt diff $newest three
expect 5 heddle ckpt verify one
says "bad  $newest: "
says 'ok   one/ckpt/step-000000005  step 5'
says '1 of 2 checkpoints are bad'
expect 5 heddle ckpt verify one --json
json_ok
says '"ok":false'
expect 0 heddle ckpt ls one
same "$(grep -c unreadable out)" 1 "ls marks what is unreadable"
expect 0 heddle ckpt ls one --json
json_ok
expect 0 heddle ckpt digest one
flip_last_bit one/ckpt/step-000000005/optim.safetensors
expect 5 heddle ckpt verify one
says '2 of 2 checkpoints are bad'
mkdir empty
expect 3 heddle ckpt digest empty
says 'holds no checkpoint'
passed "a flipped bit is refused, the older one is taken"
