#!/bin/bash
# What a user can get wrong, and what a machine can: the message, the exit code, and that
# nothing is lost.
. "$(dirname "$0")/program.sh"
write_jobs 6

# ---- data files
word()
{
	printf \
		"$(printf '\\x%02x\\x%02x\\x%02x\\x%02x' $(($1 >> 24 & 255)) $(($1 >> 16 & 255)) \
		$(($1 >> 8 & 255)) $(($1 & 255)))"
}
make_set()        # a folder of 40 images of 6 x 6 with labels below 4
{
	rm -rf set
	mkdir set
	{ printf '\0\0\x08\x03'; word 40; word 6; word 6; seq 1 400 | tr -d '\n' | head -c $((40 * 36)) |
		tr '0-9' '\0-\11'; } >set/train-images-idx3-ubyte
	pad=$((16 + 40 * 36 - $(stat -c %s set/train-images-idx3-ubyte)))
	[ $pad -le 0 ] || head -c $pad /dev/zero >>set/train-images-idx3-ubyte
	{ printf '\0\0\x08\x01'; word 40; for i in $(seq 10); do printf '\0\1\2\3'; done; } \
		>set/train-labels-idx1-ubyte
}
sed 's/data: .*/data: {kind: idx, path: set}/; s/checkpoint: .*/checkpoint: {every: 1 steps}/' mlp.yaml \
	>idx.yaml

refused()        # exit code, text, what
{
	expect "$1" heddle run idx.yaml --out refused
	says "$2"
	[ -z "$(find refused -name 'step-*' 2>/dev/null)" ] || failed "$3: a step was taken"
	rm -rf refused
	passed "$3"
}

# ---- a table that tokens index
cat >table.graph <<'G'
graph table
input x i32 [*,4]
input y i32 [*,4]
param t f32 [10,8] normal 0.02
param w f32 [1000,8] normal 0.02
%0 = embed x t
%1 = matmul %0 w tb=1
%2,%3,%4 = softmax_xent %1 y
%5 = sum64 %2
%6 = count64 y
output loss %5
output weight %6
output logits %1
G
cat >table.yaml <<'END'
job: {steps: 2}
model: {use: "graph:table.graph", loss: none}
data: {kind: synthetic}
batch: {global: 4, virtual_nodes: 1}
END
expect 3 heddle run table.yaml --out table
says 'has a table of 10 rows, the data may hold 1000 different tokens'
grep -v logits table.graph >quiet.graph
sed 's/table.graph/quiet.graph/' table.yaml >quiet.yaml
expect 3 heddle run quiet.yaml --out quiet
says 'has a table of 10 rows, the data may hold 1000 different tokens'
sed -i 's/\[10,8\]/[1000,8]/' table.graph
expect 0 heddle run table.yaml --out table -q
sed -e 's/^%0 = .*/%0 = mul x x\n%7 = embed %0 t/' -e 's/= matmul %0/= matmul %7/' \
	-e 's/\[1000,8\] normal 0.02/[1000,8] normal 0.02/' table.graph >computed.graph
sed 's/table.graph/computed.graph/' table.yaml >computed.yaml
expect 4 heddle run computed.yaml --out computed
says 'embed'
passed "a table shorter than the tokens that index it is refused; ids computed past its end are no number"

# ---- data of another shape or kind than the model reads
head -c 4000 /dev/zero | tr '\0' 'a' >as.txt
sed 's/data: .*/data: {kind: text, path: as.txt}/; s/vocab: 33/vocab: 257/' bert_cls.yaml >cls_text.yaml
expect 3 heddle run cls_text.yaml --out refused
says 'of each sample the model reads "y" as i32 [], the data have i32 [8]'
sed 's/data: .*/data: {kind: text, path: as.txt}/' bert_cls.yaml >cls_text.yaml
expect 3 heddle run cls_text.yaml --out refused
says 'token 97 at byte 0, the model knows 0 to 32'
printf '%s\n' 'text,y' 'good,0' 'bad,1' 'so so,2' >three.csv
sed -e 's/data: .*/data: {kind: csv, path: three.csv, split: {train: 1}}/' \
	-e 's/vocab: 33, pad: 3/vocab: 257, pad: 256/' \
	-e 's/global: 14, virtual_nodes: 7/global: 3, virtual_nodes: 3/' bert_cls.yaml >cls_csv.yaml
expect 0 heddle run cls_csv.yaml --out cls_csv -q
expect 3 heddle run cls_csv.yaml -s model.args.classes=2 --out refused
says 'three.csv:4:7: 2 is not between 0 and 1'
expect 3 heddle run cls_csv.yaml -s model.args.head=mlm --out refused
says 'of each sample the model reads "y" as i32 [8], the data have i32 []'
[ ! -e refused ] || failed "a run directory was made"
passed "labels, tokens and texts that the model would misread are refused"

make_set
expect 0 heddle run idx.yaml --out good -q
refused_before=$(heddle ckpt digest good)
rm -rf set
refused 3 'the data folder set does not exist' "missing data"
make_set
truncate -s 700 set/train-images-idx3-ubyte
refused 3 'train-images-idx3-ubyte is ' "truncated data"
make_set
printf '\1' | dd of=set/train-images-idx3-ubyte bs=1 conv=notrunc 2>/dev/null
refused 3 'the magic number is wrong' "wrong magic"
make_set
gzip -n set/train-labels-idx1-ubyte
printf 'xxxx' | dd of=set/train-labels-idx1-ubyte.gz bs=1 seek=14 conv=notrunc 2>/dev/null
refused 3 'train-labels-idx1-ubyte.gz' "corrupt data"
make_set
printf '\11' | dd of=set/train-labels-idx1-ubyte bs=1 seek=20 conv=notrunc 2>/dev/null
refused 3 'label 9 of sample 12 is out of range' "labels out of range"
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	make_set
	chmod 700 set "$work"
	chmod 755 "$work"
	mkdir -m 777 open
	(cd open && cp ../idx.yaml . && sed -i 's/path: set/path: ..\/set/' idx.yaml
	expect 11 setpriv --reuid 65534 --clear-groups "$HEDDLE_BIN" run idx.yaml --out refused
	says 'set'
	says 'ermission denied') || exit 1
	passed "unreadable directory"
else
	echo "skip: an unreadable directory (needs root and setpriv)"
fi
make_set
same "$(heddle ckpt digest good)" "$refused_before" "the run that was there"

# Other data than the run began with.
printf '\3' | dd of=set/train-labels-idx1-ubyte bs=1 seek=8 conv=notrunc 2>/dev/null
expect 5 heddle resume good
says 'other data'
make_set
expect 0 heddle resume good -q
passed "resume on other data is refused; with the right data it goes on"

# ---- the job file
bad_job()        # exit code, text, what; the job on stdin
{
	cat >bad.yaml
	expect "$1" heddle run bad.yaml
	says "$2"
	[ ! -e runs/mlp ] || failed "$3: a run directory was made"
	passed "$3"
}
bad_job 2 'bad.yaml:4:9: there is no key batch.gobal; did you mean batch.global?' "unknown key" \
	< <(sed 's/global/gobal/' mlp.yaml)
bad_job 2 'bad.yaml:4:17: batch.global' "wrong type" < <(sed 's/global: 26/global: lots/' mlp.yaml)
bad_job 2 'bad.yaml:4:36: batch.virtual_nodes is 96, more than batch.global 26; use at most 26' \
	"impossible batch" < <(sed 's/virtual_nodes: 13/virtual_nodes: 96/' mlp.yaml)
bad_job 2 'bad.yaml:1:' "a key twice" < <(sed 's/steps: 6/steps: 6, steps: 7/' mlp.yaml)
bad_job 2 'batch' "no whole batch in the data" \
	< <(sed 's/global: 26/global: 400/; s/virtual_nodes: 13/virtual_nodes: 4, last: drop/' mlp.yaml)
bad_job 11 'MiB' "model too large for memory" < <(sed 's/hidden: \[24\]/hidden: [400000, 400000]/' mlp.yaml)
says 'parameters'
expect 11 heddle run mlp.yaml -s "workers.memory=1 KiB"
says 'MiB'
passed "a limit of memory that the user sets"
expect 3 heddle run nowhere.yaml
says 'nowhere.yaml'
expect 2 heddle run mlp.yaml --devices 0
says 'devices "0"'
passed "a missing job file, impossible devices"

# ---- names and locks
expect 0 heddle run mlp.yaml -q
expect 0 heddle run mlp.yaml -q
[ -d runs/mlp ] && [ -d runs/mlp-2 ] || failed "the second run of a name is NAME-2"
passed "a second run of the same name, later: NAME-2"
expect 2 heddle run mlp.yaml --out runs/mlp
says 'holds a run already'
says 'heddle resume runs/mlp'
mkdir begun
cp runs/mlp/job.yaml begun
expect 3 heddle resume begun
says 'rm -r begun'
expect 2 heddle run mlp.yaml --out begun
says 'rm -r begun'
passed "--out onto a run says how to resume, or that there is nothing to"
kept=$(heddle ckpt digest runs/mlp)
"$HEDDLE_BIN" run mlp.yaml -s job.steps=1000000 -s 'checkpoint.every=1 h' --out held -q 2>/dev/null &
run=$!
until [ -s held/metrics.ndjson ]; do kill -0 $run 2>/dev/null || failed "the run ended by itself"; done
expect 1 heddle resume held
says 'another process is running it'
expect 2 heddle run mlp.yaml --out held
kill -TERM $run
status=0
wait $run || status=$?
[ $status -eq 75 ] || failed "SIGTERM: exit $status"
passed "two processes in one run: the second is refused, the first goes on to a clean stop"

# ---- checkpoints
expect 2 heddle resume runs/mlp -s job.seed=77
says 'another job'
same "$(heddle ckpt digest runs/mlp)" "$kept" "a refused resume leaves the run alone"
mkdir mixed
cp -r runs/mlp mixed/run
rm -rf mixed/run/ckpt/step-*
train run gpt.yaml --out other
cp -r other/ckpt/step-000000006 mixed/run/ckpt/
expect 2 heddle resume mixed/run
says 'another job'
passed "checkpoint of another job"

flip()
{
	size=$(stat -c %s "$1")
	byte=$(tail -c 9 "$1" | head -c 1 | od -An -tu1)
	printf "$(printf '\\x%02x' $((byte ^ 16)))" | dd of="$1" bs=1 seek=$((size - 9)) conv=notrunc \
		2>/dev/null
}
train run mlp.yaml --out flipped
whole=$digest
flip flipped/ckpt/step-000000006/model.safetensors
train resume flipped
same "$digest" "$whole" "after a flipped bit"
grep -q '"kind":"checkpoint_bad"' flipped/events.ndjson || failed "no event checkpoint_bad"
passed "flipped bit: the next older checkpoint is taken, the result is the same"
rm -rf flipped
train run mlp.yaml --out flipped
for folder in flipped/ckpt/step-*; do flip $folder/model.safetensors; done
expect 5 heddle resume flipped
says 'is refused'
[ "$(ls -d flipped/ckpt/step-* | wc -l)" -ge 2 ] || failed "damaged checkpoints were removed"
passed "no whole checkpoint left: exit 5, and nothing is removed"

# ---- a full disk
mkdir disk
train run gpt.yaml --out undisturbed
HD_FAIL='ckpt.write.before:err=ENOSPC@4' heddle version >/dev/null 2>&1 && {
	HD_FAIL='ckpt.write.before:err=ENOSPC@7' expect 0 heddle run gpt.yaml --out disk/run
	says 'no checkpoint at step'
	says 'the older ones are kept'
	same "$(heddle ckpt digest disk/run)" "$digest" "a run whose disk was full for a moment"
	passed "disk full at one checkpoint: the run goes on, the older ones stay"
}
if mount -t tmpfs -o size=600k none disk 2>/dev/null; then
	trap 'end_jobs; umount "$work/disk"; rm -rf "$work"' EXIT
	expect 0 heddle run mlp.yaml --steps 2 --out disk/run -q
	kept=$(heddle ckpt digest disk/run)
	dd if=/dev/zero of=disk/filler bs=1k count=2000 2>/dev/null
	expect 11 heddle resume disk/run
	says 'is full'
	same "$(heddle ckpt digest disk/run)" "$kept" "the checkpoint on a full disk"
	rm disk/filler
	train resume disk/run
	train run mlp.yaml --out roomy
	expect 0 heddle ckpt diff disk/run roomy
	passed "a really full disk: exit 11, the old checkpoint stays, with room it goes on to the same bits"
else
	echo "skip: a really full disk (mount -t tmpfs is refused here)"
fi
