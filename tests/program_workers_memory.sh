#!/bin/bash
# What several workers take is what --dry-run and the run itself predict: of devices, and of memory as the
# system counts it.
. "$(dirname "$0")/program.sh"
cat >wide.yaml <<'Y'
job:   {name: wide, seed: 3, steps: 100000}
model: {use: "builtin:mlp", args: {input: [1, 32, 32], hidden: [4000, 1200], classes: 10}}
data:  {kind: synthetic, count: 200}
batch: {global: 16, virtual_nodes: 8}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 100000 steps, keep: 2}
eval: {every: 0}
workers: {pace: 2 ms, detect: 20 s, min_wait: 600 s}
Y
memory_of() { sed -n "s/.*worker $1: memory: \([0-9.]*\) MiB.*/\1/p" "$2" | head -n 1; }
taken_by() { awk '/^RssAnon:|^RssShmem:/ { n += $2 } END { print n / 1024 }' "/proc/$1/status"; }
members()
{
	heddle status "$1" --json 2>/dev/null | grep -o '"worker":[0-9]*,"state":"member","pid":[1-9][0-9]*' |
		sed 's/[^0-9,]//g; s/,,/,/'
}
said() { [ "$(grep -c 'worker [0-9]*: memory:' log)" -ge "$1" ]; }

for workers in 2 3; do
	expect 0 heddle run wide.yaml --dry-run --workers $workers --devices 1
	says 'nothing was started'
	grep -o 'worker [0-9]*: memory: .*' err | sort >predicted
	same "$(wc -l <predicted)" $workers "lines of --dry-run and workers"
	same "$(grep -c 'worker [0-9]: [0-9]* virtual nodes on 1 device x 1 thread$' err)" $workers \
		"devices of --dry-run and workers"
	same "$(sed -n 's/.*worker [0-9]: \([0-9]*\) virtual nodes.*/\1/p' err |
		awk '{ n += $1 } END { print n }')" 8 "virtual nodes of all workers, and the job's"

	"$HEDDLE_BIN" run wide.yaml --out team$workers --workers $workers --devices 1 \
		-s workers.min=$workers 2>log &
	run=$!
	reach team$workers 6
	await said $workers || failed "a worker says nothing of its memory: $(cat log)"
	members team$workers >now
	same "$(wc -l <now)" $workers "members and workers"
	grep -o 'worker [0-9]*: memory: .*' log | sort >said
	cmp -s predicted said || failed "--dry-run and the run differ: $(diff predicted said)"
	if ! grep -qE '__(asan|tsan)_init' "$HEDDLE_BIN"; then
		while IFS=, read -r worker pid; do
			taken=$(taken_by "$pid")
			awk -v t="$taken" -v p="$(memory_of "$worker" log)" \
				'BEGIN { exit !(p > 100 && t > 0.95 * p && t < 1.05 * p + 8) }' ||
				failed \
					"worker $worker of $workers: $(memory_of "$worker" \
					log) MiB predicted, $taken MiB taken"
			echo \
				"worker $worker of $workers: $(memory_of "$worker" \
				log) MiB predicted, $taken MiB taken"
		done <now
	fi
	expect 0 heddle stop team$workers
	wait $run
	rm -rf team$workers
done

# where the job is small its links are what it takes: to the others, and to the coordinator
if ! grep -qE '__(asan|tsan)_init' "$HEDDLE_BIN"; then
	"$HEDDLE_BIN" run wide.yaml --out links --workers 6 --devices 1 -s workers.min=6 \
		-s 'model.args={input: [1, 6, 6], hidden: [24], classes: 4}' 2>log &
	run=$!
	reach links 20
	await said 6 || failed "a worker says nothing of its memory: $(cat log)"
	members links >now
	while IFS=, read -r worker pid; do
		taken=$(taken_by "$pid")
		awk -v t="$taken" -v p="$(memory_of "$worker" log)" 'BEGIN { exit !(t < 1.25 * p + 8) }' ||
			failed \
				"worker $worker of 6, a small job: $(memory_of "$worker" \
				log) MiB predicted, $taken MiB taken"
	done <now
	echo "a small job on 6 workers: $(memory_of 0 log) MiB predicted, $taken MiB taken"
	expect 0 heddle stop links
	wait $run
fi
passed "each of several workers takes what was predicted of it, before the run and by it"

expect 2 heddle run wide.yaml --dry-run --workers 9
says '9 workers: this job takes from 1 (workers.min) to 8'
expect 2 heddle run wide.yaml --dry-run --workers 0
says '--workers is from 1 to'
expect 11 heddle run wide.yaml --dry-run --workers 2 --devices 1 -s workers.memory=200MiB
says 'worker 0: the job needs'
[ ! -e runs ] || failed "--dry-run made a run"
passed "--dry-run refuses what the run would refuse"
