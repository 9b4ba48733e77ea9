#!/bin/bash
# A disk that fills up: what it keeps from being written is said once, and a run does not go on where nothing
# can be saved.
. "$(dirname "$0")/program.sh"
write_jobs 200
sed -i 's/checkpoint: .*/checkpoint: {every: 10 steps, keep: 2}\neval: {every: 0}/' mlp.yaml

if has_failpoints; then
	expect 11 env HD_FAIL=ckpt.write.before:err=ENOSPC "$HEDDLE_BIN" run mlp.yaml --out once --devices 1
	same "$(grep -c '!! no checkpoint at step' err)" 1 \
		"times that a full disk is reported, of 19 checkpoints"
	same "$(grep -c 'no checkpoint at step' once/events.ndjson)" 1 "events of it"
	expect 0 env HD_FAIL=ckpt.write.before:err=ENOSPC@1 "$HEDDLE_BIN" run mlp.yaml --out again --devices 1
	says 'a checkpoint is saved again, after 1 that could not be'
	status=0
	HD_FAIL=store.before:err=ENOSPC timeout 600 "$HEDDLE_BIN" run mlp.yaml --out store --workers 1 \
		--devices 1 2>log &
	run=$!
	asks() { grep -q '!! .*store.sqlite' log; }
	await asks || failed "no line says that the store cannot be written"
	# it is tried with every sign of life: some more of them pass
	before=$(wc -c <store/events.ndjson)
	for _ in {1..20}; do heddle status store >out 2>err; done
	same "$(grep -c '!! .*store.sqlite' log)" 1 "times that it is reported"
	kill -9 $run $(heddle status store --json | grep -o '"pid":[1-9][0-9]*' | cut -d: -f2) 2>/dev/null
	wait $run 2>/dev/null
	passed "what cannot be written is reported once, and that it can be again"
fi

# a small file system of its own, where that may be made
mkdir small
if ! mount -t tmpfs -o size=1m tmpfs small 2>/dev/null; then
	echo "skip: no file system can be mounted here"
	exit 0
fi
trap 'end_jobs; umount "$work/small"; rm -rf "$work"' EXIT
expect 0 heddle run mlp.yaml --out small/one --devices 1 --steps 20 -q
expect 0 heddle run mlp.yaml --out small/two --workers 1 --devices 1 --steps 20 -q
dd if=/dev/zero of=small/fill bs=1k 2>/dev/null
for run in 'small/one' 'small/two --workers 1'; do
	expect 11 heddle resume $run --devices 1
	says "the disk of ${run%% *} is full"
	says "the file system at $work/small has 0.0 MiB left; free at least"
done
rm small/fill
for run in 'small/one' 'small/two --workers 1'; do
	expect 0 heddle resume $run --devices 1 -q
done
passed "resume names the disk that is full, and what is missing"
