#!/bin/bash
# optim.update: a replay of the version map, and the bits of one device on many, in stages, over workers that
# die and come, after a resume.
. "$(dirname "$0")/program.sh"

# numbers with few bits, 60 of them
{
	echo a,b,y
	for i in {1..60}; do
		echo $((i * 37 % 64 - 32))e-2,$((i * 23 % 64 - 32))e-2,$((i * 11 % 32 - 16))e-2
	done
} >rows.csv
cat >small.yaml <<END
job: {name: small, seed: 3, steps: 9, kernels: portable}
model: {use: "builtin:mlp", loss: mse, args: {input: [2], hidden: [2, 2], classes: 1}}
data: {kind: csv, path: rows.csv, split: {train: 1, valid: 0}}
batch: {global: 1, virtual_nodes: 1}
optim: {kind: momentum, lr: 0.1, clip: 0, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 3 steps}
END

python=${HEDDLE_PYTHON:-python3}
if "$python" -c 'import numpy' 2>/dev/null; then
	# UPDATE V: with a stage a layer
	for shape in flush:8 2bw:8 2bw:1 stash:1 stash:2 stash:8 vsync:1 vsync:2; do
		IFS=: read -r update vns <<<"$shape"
		set -- -s optim.update=$update -s batch.global=$vns -s batch.virtual_nodes=$vns
		case $update in stash|vsync) set -- "$@" -s optim.cuts=0,2,4 ;; esac
		train run small.yaml --devices 1 --out small-$update-$vns "$@"
		expect 0 heddle bench step small.yaml --devices 1 --repeat 6 -q "$@" \
			--save problem.safetensors
		expect 0 "$python" "$SOURCE_DIR/tests/delayed_replay.py" problem.safetensors \
			small-$update-$vns $update 3 $vns 9
		says "$update: "
		[ $shape = stash:8 ] || continue
		# its steps overlap: the last stage updates before the norm is known
		train run small.yaml --devices 3 --out early -s parallel.schedule=stash "$@"
		grep -q '^overlap$' early/plan/0000.plan || failed "steps of stash do not overlap"
		expect 0 "$python" "$SOURCE_DIR/tests/delayed_replay.py" problem.safetensors early stash 3 8 9
		# and over workers, where a step that is skipped ends the epoch
		sed '30s/^[^,]*/1e38/' rows.csv >sick.csv
		set -- "$@" -s data.path=sick.csv -s optim.on_nonfinite=skip -s optim.lr=0.01
		train run small.yaml --devices 1 --out sick-one "$@"
		one=$digest
		# all parameters are of one bucket, which all hold: digests of it compare the early update
		train run small.yaml --workers 3 --out sick "$@" -s parallel.schedule=stash \
			-s comm.sync=stages -s trace.digest=1
		same "$digest" "$one" "stash over 3 workers, with a step that is skipped"
		grep -q '^overlap$' sick/plan/0001.plan || failed "steps of stash do not overlap over workers"
		skipped=$(sed -n 's/.*"step":\([0-9]*\),.*"gnorm":"\(inf\|nan\)".*/\1/p' \
			sick/metrics.ndjson | head -n 1)
		[ -n "$skipped" ] || failed "no step was skipped"
		grep -q "\"kind\":\"view\".*from step $((skipped + 1)) on" sick/events.ndjson ||
			failed "no epoch ended with a step that was skipped"
	done
	# the replay sees what reads another version
	expect 1 "$python" "$SOURCE_DIR/tests/delayed_replay.py" problem.safetensors small-vsync-2 flush 3 2 9
	expect 1 "$python" "$SOURCE_DIR/tests/delayed_replay.py" problem.safetensors small-vsync-2 stash 3 2 9
	passed "parameters, earlier versions and slots are those of a replay in numpy, bit for bit"
else
	echo "skip: $python has no numpy (set HEDDLE_PYTHON): no replay"
fi

# JOB: a shape per update, any number of devices
write_jobs 6
for update in 2bw stash vsync; do
	set -- -s optim.update=$update
	[ $update = 2bw ] || set -- "$@" -s optim.cuts=auto:3
	train run gpt.yaml --out $update-one --devices 1 "$@"
	one=$digest
	train run gpt.yaml --out $update-two --devices 2 "$@"
	same "$digest" "$one" "$update: 2 devices"
	train run gpt.yaml --out $update-own --devices 3 "$@" -s parallel.schedule=$update
	same "$digest" "$one" "$update: stages in the order of $update"
	expect 0 heddle ckpt diff $update-one $update-own
	train run gpt.yaml --out $update-zb --devices 2 "$@" -s parallel.schedule=zb-v
	same "$digest" "$one" "$update: zb-v"
	for at in 1 2 3 4 5; do
		train run gpt.yaml --steps $at --out $update-$at --devices $((1 + at % 3)) "$@"
		mode=pipeline
		[ $((at % 2)) = 1 ] || mode=data
		train resume $update-$at --devices 2 -s parallel.mode=$mode
		same "$digest" "$one" "$update: resumed at step $at"
	done
	eval "${update/2bw/twobw}=$one"
done
train run gpt.yaml --out flush --devices 1
[ "$digest" != "$twobw" ] && [ "$twobw" != "$stash" ] || failed "another update has the same bits"
passed "any devices, stages and order, resumed at any step"

# steps that overlap: evaluated and saved in between, killed, taken from the plan file
grep -q '^overlap$' 2bw-own/plan/0000.plan || failed "steps of 2bw do not overlap"
! grep -q '^overlap$' stash-own/plan/0000.plan || failed "steps of stash overlap that are clipped"
grep -q 'drained each step (the last stage waits for the norm that optim.clip needs)' \
	stash-own/plan/0000.plan || failed "no cause of a drain"
grep -q 'with steps that overlap' 2bw-own/plan/0000.plan || failed "no cause"
train run gpt.yaml --devices 3 -s optim.update=2bw -s parallel.schedule=2bw -s eval.every=1 --out seen
same "$digest" "$twobw" "evaluated after each step"
train run gpt.yaml --devices 3 -s optim.update=2bw --plan 2bw-own/plan/0000.plan --out by-file
same "$digest" "$twobw" "the plan file of another run"
expect 11 heddle run gpt.yaml --devices 3 --plan 2bw-own/plan/0000.plan --out no
says 'leave out the plan'
has_saved() { [ "$(ls killed/ckpt 2>/dev/null | grep -c '^step-')" -ge 2 ]; }
"$HEDDLE_BIN" run gpt.yaml --out killed --devices 3 -s optim.update=2bw -s parallel.schedule=2bw \
	-s job.steps=100000 -q 2>/dev/null &
run=$!
await has_saved || failed "no checkpoint"
kill -9 $run
wait $run 2>/dev/null
end=$((10#$(ls killed/ckpt | grep '^step-' | tail -n 1 | cut -d- -f2) + 5))
expect 0 heddle resume killed --devices 2 --steps $end -q
train run gpt.yaml --out undisturbed --devices 1 -s optim.update=2bw -s job.steps=100000 --steps $end
expect 0 heddle ckpt diff undisturbed killed
passed "steps that overlap have the same bits, whatever comes between two of them"

# over workers: all have the earlier versions, or those of their stages; resumed with fewer, and with none
for shape in 2bw:3:pipeline:allreduce vsync:2:pipeline:stages stash:2:pipeline:stages stash:2:data:sharded; do
	IFS=: read -r update workers mode sync <<<"$shape"
	set -- -s optim.update=$update -s parallel.mode=$mode -s comm.sync=$sync -s workers.detect=10s
	[ $update = 2bw ] || set -- "$@" -s optim.cuts=auto:3
	[ $mode = data ] || set -- "$@" -s parallel.schedule=$update
	one=${update/2bw/twobw}
	train run gpt.yaml --out $update-$sync --workers $workers -s trace.digest=1 "$@"
	same "$digest" "${!one}" "$update over $workers workers, $sync"
done
# before the norm of the first step, which waits for all, rank r of 3 has run the 7 forwards of that step and
# 4 - r of the next, or more, up to all 7 of them: as the flight recorder of each worker has them
cat >begun.py <<'END'
import struct, sys
for path in sys.argv[1:]:
    data, ops = open(path, "rb").read(), []
    at = struct.unpack_from("<Q", data, 1024)[0]
    for i in range(struct.unpack_from("<Q", data, at)[0]):
        slot = data[at + 64 + 32 * i:at + 96 + 32 * i]
        if slot[15] == 3:
            text = struct.unpack_from("<Q", data, 144)[0] + struct.unpack_from("<I", slot, 16)[0]
            ops.append((struct.unpack_from("<Q", slot)[0], data[text:data.index(b"\0", text)].decode()))
    ops = [op for _, op in sorted(ops)]
    print(ops[:ops.index("NORM")].count("F"))
END
read -r least more most <<<"$("$python" begun.py 2bw-allreduce/flight/*.hdfr | sort -n | xargs)"
[ "$least" -ge 9 ] && [ "$more" -ge 10 ] && [ "$most" -ge 11 ] && [ "$most" -le 14 ] ||
	failed "$least, $more and $most forwards before the first norm"
for run in 2bw-allreduce vsync-stages; do
	grep -q '^overlap$' $run/plan/*.plan || failed "$run: steps do not overlap over workers"
done
grep -q 'drained each step (the last stage' stash-stages/plan/*.plan ||
	failed "no cause of a drain over workers"
# and where a step waits to begin, a worker runs ahead: instructions between the end of a step and the next
# begin, as the flight recorders have them
cat >between.py <<'END'
import struct, sys
n = 0
for path in sys.argv[1:]:
    data, kinds, between = open(path, "rb").read(), [], False
    at = struct.unpack_from("<Q", data, 1024)[0]
    for i in range(struct.unpack_from("<Q", data, at)[0]):
        slot = data[at + 64 + 32 * i:at + 96 + 32 * i]
        kinds.append((struct.unpack_from("<Q", slot)[0], slot[15]))
    for _, kind in sorted(kinds):
        n += between and kind == 3
        between = kind == 2 or between and kind != 1
print(n)
END
if has_failpoints; then
	HD_FAIL=gate.passed:delay=50 train run gpt.yaml --out held-up --workers 3 -s optim.update=2bw \
		-s parallel.mode=pipeline -s parallel.schedule=2bw -s workers.detect=10s
	same "$digest" "$twobw" "2bw over 3 workers whose steps begin late"
	[ "$("$python" between.py held-up/flight/*.hdfr)" -gt 0 ] || failed "no instruction was run ahead"
fi
# chosen by measured times: in the order that the key names, which a resume keeps
for update in 2bw stash; do
	set -- -s optim.update=$update -s parallel.mode=auto -s parallel.schedule=$update
	[ $update = 2bw ] || set -- "$@" -s optim.cuts=auto:3 -s optim.clip=0
	train run gpt.yaml --out auto-$update --workers 2 --steps 3 "$@"
	[ $update = stash ] || expect 0 heddle resume auto-$update --workers 2 -q
	for plan in auto-$update/plan/*.plan; do
		grep -q '^overlap$' $plan || failed "$plan, of what auto chose: $(grep ^cause $plan)"
	done
	grep -q "\"settled\":\"$update 2 2 " auto-$update/job.resolved.json ||
		failed "auto-$update settles on another order"
done
expect 0 heddle ckpt diff 2bw-one auto-2bw
# and where the key leaves the order open, on workers that wait: none has fewer cores than devices
set -- --workers 2 --devices paced:1 -s optim.update=2bw -s parallel.mode=auto -s parallel.chunks=1
expect 0 heddle run gpt.yaml --out auto-open --steps 2 -q "$@" -s comm.sync=stages
grep -q 'plan: 2bw, 2 stages, steps overlap: ' auto-open/events.ndjson ||
	failed "auto finds no steps that overlap"
grep -q '"settled":"2bw 2 2 ' auto-open/job.resolved.json || failed "auto-open settles on another order"
grep -q '^overlap$' auto-open/plan/0001.plan || failed "the steps of auto-open do not overlap"
expect 0 heddle run gpt.yaml --dry-run "$@" -s trace.samples=true
says 'each step is drained, though optim.update: 2bw lets steps overlap: trace.samples'
for key in parallel.offload=stage trace.samples=true; do
	expect 2 heddle worker --join 2bw-allreduce -s $key
	says "leave it out: the run's own holds"
done
for variable in HEDDLE_PARALLEL_OFFLOAD=stage HEDDLE_TRACE_SAMPLES=true; do
	expect 2 env $variable "$HEDDLE_BIN" worker --join 2bw-allreduce
	says "${variable%=*}) differs from the run's"
done
train run gpt.yaml --out moved --workers 3 --steps 2 -s optim.update=stash -s optim.cuts=auto:3 \
	-s parallel.schedule=stash
train resume moved --workers 2 --steps 4 -s parallel.schedule=zb-h1
train resume moved --devices 2
same "$digest" "$stash" "stash over 3, then 2 workers, then in one process"
passed "workers hand earlier versions on, by stages too"

# two pipelines by stages, parameters up to two steps late: a member, the coordinator and another member are
# killed, one is added
write_jobs 1000000                # it ends where it is stopped: nothing comes too late
set -- -s optim.update=stash -s optim.cuts=auto:4 -s batch.virtual_nodes=2 -s batch.global=8
"$HEDDLE_BIN" run gpt.yaml --out kill-far --workers 4 -s parallel.mode=pipeline -s parallel.stages=2 \
	-s parallel.replicas=2 -s comm.sync=stages -s workers.pace=20ms -s workers.detect=400ms "$@" \
	>killed.log 2>&1 &
reach kill-far 8
pid_in() { heddle status $1 --json | grep -o "\"worker\":$2,[^}]*\"pid\":[1-9][0-9]*" | grep -o '[0-9]*$'; }
kill -9 $(pid_in kill-far 1)
reach kill-far 16
expect 0 heddle scale kill-far 4
reach kill-far 24
kill -9 $!
# members step on without a coordinator: whoever takes over says where they are
await pid_in kill-far 0 >pid || failed "worker 0 has no process after a takeover"
at=$(step kill-far)
kill -9 $(tail -n 1 pid)
reach kill-far $((at + 3))
expect 0 heddle stop kill-far
is_stopped() { heddle status kill-far --json | grep -q '"state":"stopped"'; }
await is_stopped || failed "kill-far does not stop"
train run gpt.yaml --out kill-one --devices 1 "$@" \
	--steps $((10#$(ls kill-far/ckpt | tail -n 1 | cut -d- -f2)))
expect 0 heddle ckpt diff kill-one kill-far
grep -aq '@-2' kill-far/ckpt/*/optim.safetensors || failed "no parameter is two steps late"
passed "a lost worker's earlier versions come from another holder"

# words for what does not go together
write_jobs 6
expect 2 heddle run gpt.yaml --workers 2 --plan 2bw-own/plan/0000.plan -s optim.update=2bw --out no
says '--plan is for the devices of one process'
expect 2 heddle run gpt.yaml -s optim.update=stash --out no
says 'optim.cuts: auto:4'
expect 2 heddle run gpt.yaml -s optim.update=stash -s optim.cuts=0,4000 --out no
says 'optim.cuts: '
expect 2 heddle run gpt.yaml --devices 2 -s parallel.schedule=2bw --out no
says 'the job says flush'
expect 2 heddle resume 2bw-one -s optim.update=flush
expect 0 heddle config check gpt.yaml -s optim.update=2bw
[ ! -e no/ckpt ] || failed "a refused run left checkpoints"
passed "what does not go together is refused with what would"
