#!/bin/bash
# scale -s: pipelines over workers change their stages, schedule, copies, devices of a rank and recomputation
# while workers are killed, with the bits of one device. HD_RESHAPES=30: so many changes, HD_RESHAPE_SEED:
# other ones.
. "$(dirname "$0")/program.sh"
changes=${HD_RESHAPES:-2} seed=${HD_RESHAPE_SEED:-1}

# a number below $1
draw() { seed=$(((seed * 1103515245 + 12345) & 0x7fffffff)); drawn=$(((seed >> 8) % $1)); }
# schedule, stages, copies, devices of a rank, whether stages compute again: over 4 workers of one device
shapes=(2:1f1b:auto:1:none 3:gpipe:1:1:none 2:1f1b:1:2:none 4:zb-v:2:1:stage 1:1f1b:1:4:none 4:1f1b:1:1:none
	2:gpipe:1:2:stage 2:zb-h1:2:1:none 1:1f1b:2:2:none 4:interleaved:2:1:none 3:zb-h1:auto:1:stage
	4:zb-v:1:2:none 2:gpipe:1:1:none 4:dualpipev:1:1:none)
newest() { ls $run/plan/*.plan | tail -n 1; }
# $1 schedule $2 stages $3 devices of a rank
in_force()
{
	local plan
	plan=$(newest)
	if [ $2 = 1 ]; then
		grep -q '; tensor: ' $plan || return
	else
		grep -qE "; $1( with recomputation)?: $2 stages, " $plan || return
	fi
	[ "$(sed -n 's/^groups //p' $plan)" = "$([ $3 = 1 ] || echo $3)" ]
}
has_workers() { heddle status $run --json | grep -q '"members":4,'; }
pid_of()
{
	heddle status $1 --json | grep -o '"state":"member","pid":[1-9][0-9]*' | sed -n "$2p" |
		grep -o '[0-9]*$'
}
ended() { heddle status $run --json | grep -qE '"state":"(stopped|done)"'; }

for sync in allreduce stages; do
	run=run-$sync
	cat >$sync.yaml <<END
job: {name: wide, seed: 3, steps: 20000}
model:
  use: "builtin:gpt"
  args: {layers: 4, width: 64, heads: 4, context: 16, vocab: 4000, dropout: 0.1}
  shards: 4
data: {kind: synthetic, count: 90}
batch: {global: 26, virtual_nodes: 13}
optim: {kind: adamw, lr: 1e-3, clip: 0.5}
checkpoint: {every: 10 steps}
comm: {sync: $sync}
END
	"$HEDDLE_BIN" run $sync.yaml --out $run --workers 4 -s parallel.stages=4 -s workers.pace=15ms \
		-s workers.detect=2s >$run.log 2>&1 &
	driver=$!
	reach $run 12
	# nothing stops for it: no worker ends, no step is lost
	expect 0 heddle scale $run -s parallel.stages=3 -s parallel.schedule=zb-h1
	await in_force zb-h1 3 1
	expect 0 heddle scale $run -s parallel.stages=2 -s parallel.tensor=2 -s parallel.recompute=stage
	await in_force zb-h1 2 2
	reach $run $(($(wc -l <$run/metrics.ndjson) + 4))
	! grep -E '"kind":"(lost|restore|process_ended)"' $run/events.ndjson ||
		failed "$sync: a change was a loss"
	for ((i = 1; i <= changes; i++)); do
		draw ${#shapes[@]}
		IFS=: read -r stages schedule replicas t again <<<"${shapes[drawn]}"
		expect 0 heddle scale $run -s parallel.stages=$stages -s parallel.schedule=$schedule \
			-s parallel.chunks=auto -s parallel.replicas=$replicas -s parallel.tensor=$t \
			-s parallel.recompute=$again
		# before, while or after the change is in force
		draw 3
		[ $drawn = 0 ] || await in_force $schedule $stages $t
		draw 4
		victim=$(pid_of $run $((drawn + 1)))
		[ -z "$victim" ] || kill -9 $victim
		await in_force $schedule $stages $t
		await has_workers
		[ $((i % 5)) = 2 ] && kill -9 $driver 2>/dev/null
	done
	await has_workers
	# each of them holds all state, so none of these losses sends the run back to the disk
	[ $sync = stages ] || ! grep '"kind":"restore"' $run/events.ndjson || failed "$sync: back to the disk"
	expect 2 heddle scale $run -s parallel.stages=5 -s parallel.chunks=auto -s parallel.schedule=gpipe \
		-s parallel.tensor=1
	says 'heddle scale RUN 5 -s'
	expect 2 heddle scale $run -s parallel.stages=2 -s workers.detect=1s
	says 'workers.detect does not change while a run goes on'
	expect 2 heddle scale $run -s model.shards=8
	says 'another one is another run; parallel.tensor'
	expect 2 heddle scale $run -s parallel.schedule=2bw
	expect 2 heddle scale $run
	says 'or which pipelines'
	expect 0 heddle stop $run
	await ended
	steps=$(ls $run/ckpt | tail -n 1 | grep -o '[0-9]*$')
	train run $sync.yaml --out one-$sync --devices 1 --steps $((10#$steps))
	expect 0 heddle ckpt diff one-$sync $run
	passed "$sync: $changes changes of pipelines and kills in $((10#$steps)) steps, one device's bits"
done

# what does not fit is refused before anything changes
run=tight
sed 's/context: 16/context: 64/' stages.yaml >tight.yaml
heddle run tight.yaml --out $run --workers 4 -s parallel.mode=pipeline -s workers.memory=58MiB \
	>$run.log 2>&1 &
reach $run 1
expect 11 heddle scale $run -s parallel.stages=2 -s parallel.schedule=gpipe -s parallel.replicas=1
says 'worker 0: the job needs'
expect 0 heddle scale $run -s parallel.schedule=zb-h1
expect 0 heddle stop $run
await ended
passed "pipelines that do not fit into workers.memory are refused, and the run goes on"
