#!/bin/bash
# An optimizer that changes whole tensors, where workers hold the state of their stages alone: those that hold
# parts of one tensor exchange its sums of squares before they update. Any of them may die meanwhile.
. "$(dirname "$0")/program.sh"
needs_failpoints
job()
{
	cat >$1.yaml <<END
job: {name: $1, seed: 3, steps: 4}
model: {use: "builtin:$2", args: $3$4}
data: {kind: synthetic, count: 60}
batch: {global: $5, virtual_nodes: $6}
optim: {kind: lamb, lr: 1e-2, clip: 0.5}
checkpoint: {every: 2 steps}
workers: {detect: 10 s}
comm: {sync: stages}
END
	train run $1.yaml --out $1-one --devices 1 -s comm.sync=allreduce -s parallel.mode=data
	one=$digest
}
alike()
{
	local name=$1 what=$2
	shift 2
	train run $name.yaml --out "$name-$what" "$@"
	same "$digest" "$one" "$name: $what"
}

# tensors that lie in several buckets, cut anywhere; a tied table; slices of it on two workers
job mlp mlp '{input: [1, 16, 16], hidden: [700, 600, 300], classes: 10}' '' 13 13
alike mlp 3-stages --workers 3 -s parallel.stages=3
alike mlp copies --workers 4 -s parallel.stages=2 -s parallel.replicas=2
shards=', shards: 4, sequence_shards: true'
job gpt gpt '{layers: 2, width: 64, heads: 4, context: 16, vocab: 9000, dropout: 0.1}' "$shards" 14 7
alike gpt groups --workers 2 -s parallel.tensor=2 -s parallel.mode=tensor
passed "stages, copies, groups: the bits of one device"

# two copies of two stages: a worker that dies between the exchanges leaves a copy; nothing comes from disk.
# Of buckets of 1 MiB the first is both stages', with a part of a tensor of the second; buckets by times may
# end where the stages do, and leave nothing to exchange
job small mlp '{input: [1, 16, 16], hidden: [600, 500], classes: 10}' '' 8 8
for at in ratio.before ratio.here; do
	for n in 1 3; do
		rm -rf dies
		mkdir -p dies/chaos
		chmod 700 dies
		echo "$at:kill@$n" >dies/chaos/any
		train run small.yaml --out dies --workers 4 -s parallel.stages=2 -s parallel.replicas=2 \
			-s comm.buckets=1MiB
		same "$digest" "$one" "killed at $at $n"
		[ -n "$(find dies/chaos -name 'hit.*')" ] || failed "$at $n was not reached"
		! grep -q '"kind":"restore"' dies/events.ndjson || failed "a checkpoint was read"
	done
done
passed "deaths between the two exchanges of a step: it is finished from its sums"
