#!/bin/bash
# heddle resume: the same bits from any step, and what it refuses.
. "$(dirname "$0")/program.sh"
write_jobs 6

for job in mlp lenet resnet18 inception gpt llama bert bert_cls lstm; do
	train run $job.yaml --out whole-$job
	whole=$digest
	for at in 1 2 3 4 5; do
		train run $job.yaml --steps $at --out $job-$at
		train resume $job-$at --devices $((at % 3 + 1))
		same "$digest" "$whole" "$job resumed at step $at"
	done
done
passed "each model, resumed at any step, on other devices: the state is that of an undisturbed run"

train resume whole-mlp
expect 0 heddle resume whole-mlp --steps 9
says '--steps 9 is beyond job.steps 6, where the run ends'
expect 0 heddle resume whole-mlp --steps 9 -q
grep -q '^!! --steps 9 is beyond job.steps 6' err || failed "-q hides that --steps does nothing: $(cat err)"
expect 0 heddle resume whole-mlp --steps 6 -q
[ ! -s err ] || failed "-q says more than errors: $(cat err)"
passed "a finished run has nothing left to do"

train run mlp.yaml --steps 4 --out from
train resume from --from 3
expect 0 heddle ckpt diff from whole-mlp
passed "--from takes an older checkpoint"

# samples are parted alike whatever the seed; a run of a build that had no key for it goes on with the split
# that it has
for i in {1..200}; do echo "$((i * 37 % 101)),$((i * 53 % 97)),$((i % 2))"; done | sed '1i a,b,y' >t.csv
cat >csv.yaml <<'END'
job: {name: csv, seed: 3, steps: 6}
model: {use: "builtin:mlp", args: {input: [2], hidden: [4], classes: 2}}
data: {kind: csv, path: t.csv}
batch: {global: 16, virtual_nodes: 4}
checkpoint: {every: 1 steps, keep: 2}
END
for seed in 3 4; do
	expect 0 heddle data cat csv.yaml -s job.seed=$seed --split valid --count 200
	cp out valid_$seed
done
cmp -s valid_3 valid_4 || failed "the split moves with the seed"
train run csv.yaml -s data.split_seed=auto --out by_seed
whole=$digest
train run csv.yaml --out by_key
by_key=$digest
[ "$digest" != "$whole" ] || failed "two splits, one result"
cp -r by_key torn
head -c 300 by_key/job.resolved.json >torn/job.resolved.json
expect 2 heddle resume torn
says '`cp torn/job.yaml torn/job.resolved.json`'
cp torn/job.yaml torn/job.resolved.json
train resume torn --from 5
same "$digest" "$by_key" "a run whose torn job was replaced"
passed "a torn job.resolved.json is refused with what replaces it, and that does"
train run csv.yaml -s data.split_seed=auto --steps 3 --out early
grep -q ',"split_seed":"auto"' early/job.resolved.json ||
	failed "the resolved job does not say how its data are parted"
sed -i 's/,"split_seed":"auto"//' early/job.resolved.json
train resume early
same "$digest" "$whole" "a run of before data.split_seed"
passed "the split has its own key, and runs that began before it keep theirs"

# what auto stood for at the start is kept, whatever the processor that goes on would choose
for as in portable $(heddle doctor | grep -q '^kernels library.*oneDNN, fingerprint' && echo library); do
	train run mlp.yaml -s job.kernels_auto=$as --steps 2 --out as-$as
	expect 0 heddle resume as-$as --steps 3
	says "kernels: $as on"
	expect 0 heddle resume as-$as --steps 4 --workers 1 --devices 1
	expect 0 heddle ckpt show as-$as
	says "kernels  $as,"
	sed -i "s/,\"kernels_auto\":\"$as\"//" as-$as/job.resolved.json
	expect 0 heddle resume as-$as --steps 5
	says "kernels: $as on"
	grep -q "\"kernels_auto\":\"$as\"" as-$as/job.resolved.json || failed "$as was not written down again"
	expect 0 heddle eval as-$as
done
train run mlp.yaml --steps 1 --out auto
grep -qE '"kernels_auto":"(portable|library)"' auto/job.resolved.json || failed "no choice was written down"
passed "resumes keep the kernels that a run began with, also one that began before they were written down"

train run mlp.yaml --steps 3 --out other
expect 2 heddle resume other -s optim.lr=0.5
says 'another job'
says '--new-semantics'
expect 2 heddle resume other --workers 2 --new-semantics
says 'leave out --workers until the first checkpoint'
expect 0 heddle resume other -s optim.lr=0.5 --new-semantics -q
expect 5 heddle ckpt diff other whole-mlp
passed "a changed result key is refused, and taken with --new-semantics"

# killed before its first checkpoint, as one process and as several
sed 's/steps: [0-9]*/steps: 100000000/' mlp.yaml >early.yaml
train run early.yaml --steps 50 --out undisturbed
some_steps() { [ "$(wc -l <early/metrics.ndjson)" -ge 5 ]; } 2>/dev/null
hands() { heddle status early --json 2>/dev/null | grep -o '"pid":[1-9][0-9]*' | cut -d: -f2; }
all_here() { some_steps && { [ -z "$workers" ] || [ "$(hands | wc -l)" -eq 2 ]; }; }
for workers in '' '--workers 2 --devices 1'; do
	rm -rf early
	"$HEDDLE_BIN" run early.yaml $workers -s checkpoint.every=3600s -s workers.detect=250ms --out early \
		-q 2>log &
	await all_here || failed "no steps of all: $(cat log)"
	kill -9 $! $(hands) 2>/dev/null || true
	await not answers_now early || failed "somebody coordinates what was killed"
	sleep 1                           # what was left has ended
	[ -z "$(ls early/ckpt)" ] || failed "a checkpoint so early: $(ls early/ckpt)"
	expect 3 heddle resume early --from 3
	expect 0 heddle resume early $workers --steps 50
	says 'ended before its first checkpoint'
	grep -q '"kind":"again","step":0,' early/events.ndjson ||
		failed "no event says that steps were done again: $(tail -n 4 early/events.ndjson)"
	same "$(heddle ckpt digest early)" "$digest" \
		"a run that was killed before its first checkpoint, $workers"
done
rm -rf early
train run early.yaml --steps 3 --out early
rm -rf early/ckpt
expect 3 heddle resume early
says 'is gone: bring it back'
passed "killed before its first checkpoint a run goes on at step 0; without its checkpoints it is refused"

expect 3 heddle resume nowhere
says 'not a run directory'
passed "what is no run is refused"

train run mlp.yaml --steps 3 --out away -s checkpoint.dir="$PWD/elsewhere"
[ ! -e away/ckpt/step-000000003 ] && [ -e elsewhere/away/step-000000003 ]
expect 0 heddle ckpt ls away
says '       3 '
train resume away
expect 0 heddle ckpt diff away whole-mlp
train run mlp.yaml --steps 3 --out other2 -s optim.lr=0.5 -s checkpoint.dir="$PWD/elsewhere"
expect 0 heddle ckpt diff away whole-mlp
passed "checkpoints in a folder of their own are found by resume and by every ckpt verb"

# the machine died: a checkpoint was on its disk, lines of its steps were not
expect 0 heddle run mlp.yaml --out lines --devices 1 -q --steps 3 -s eval.every=0
n=$(wc -l <lines/metrics.ndjson)
head -n 1 lines/metrics.ndjson >first && cp first lines/metrics.ndjson
expect 0 heddle resume lines --devices 1 -q
grep -q "\"kind\":\"unrecorded\".*the $((n - 1)) steps before step $n have no line in metrics.ndjson" \
	lines/events.ndjson || failed "no event says that lines are missing: $(tail -n 4 lines/events.ndjson)"
expect 0 heddle run mlp.yaml --out whole --devices 1 -q --steps 3
expect 0 heddle resume whole --devices 1 -q
! grep -Eq 'unrecorded|"again"' whole/events.ndjson || failed "lines are missing that are there, or again"
passed "steps before a checkpoint whose lines are gone are reported"
