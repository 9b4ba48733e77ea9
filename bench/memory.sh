#!/bin/bash
# memory.sh -- training in less memory than one pass needs, and one model on many small devices or few large
# ones. Prints a page:
#
#	bench/memory.sh >docs/results/memory.md
#
# 1. Jobs that in one pass (V = 1) need at least 16 times what a device may hold: refused so, then trained as
# virtual nodes, with
# the process's address space bounded (ulimit -v) far below the one pass. Growth: peak of the resident bytes
# above those of
#    the process before there was a worker, pages of programs and files taken off, which no prediction counts.
# 2. gpt-50k: what 8 devices of one thread and one device of 8 threads need, and which of them a limit leaves.
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
heddle=${HEDDLE_BIN:-build/release/heddle}
[ -x "$heddle" ] || { echo "memory: $heddle is missing; run ./dev build first" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

cat >"$work/images.yaml" <<'Y'
job:   {name: images, seed: 1, steps: 10}
model: {use: builtin:resnet18, args: {stem: cifar, height: 32, width: 32, classes: 10, base: 16}}
data:  {kind: synthetic, count: 2048}
batch: {global: 2048, virtual_nodes: 128}
optim: {kind: adamw, lr: 1e-3}
Y
cat >"$work/text.yaml" <<'Y'
job:   {name: text, seed: 1, steps: 10}
model: {use: builtin:gpt, args: {layers: 4, width: 128, heads: 4, context: 256}}
data:  {kind: synthetic, count: 1024}
batch: {global: 512, virtual_nodes: 64, normalize: token}
optim: {kind: adamw, lr: 1e-3}
Y
member() { sed -n "s/.*\"$1\":\([0-9.e+-]*\).*/\1/p" "$2"; }

echo '# Memory: what is predicted, what is taken'
echo
echo "$(made_by memory.sh), $(nproc) cores."
cat <<'Y'

## Sixteen times less than one pass

One device of one thread. `one pass`: what V = 1 would need, by its refusal under the limit. `taken`: growth
of the resident bytes at their peak over 4 steps, without pages of programs and files, under a bound of the
address space; `of it`: taken / predicted.

| job | limit MiB | one pass MiB | times | exit code | V | predicted MiB | taken MiB | of it | space MiB |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|
Y
# job limit space
while read -r job limit space; do
	code=0
	"$heddle" run "$work/$job.yaml" --devices 1 -q -C "$work" -s batch.virtual_nodes=1 \
		-s workers.memory="${limit}MiB" >"$work/refusal" 2>&1 || code=$?
	cp "$work/refusal" "$work/refusal.$job"
	whole=$(sed -n 's/.*the job needs \([0-9.]*\) MiB.*/\1/p' "$work/refusal")
	(ulimit -v $((space * 1024)); MALLOC_ARENA_MAX=1 "$heddle" bench step "$work/$job.yaml" --devices 1 \
		--threads 1 --repeat 1 --json -q -s workers.memory="${limit}MiB") >"$work/out" || {
			echo "!! $job did not train within $limit MiB"
			status=1
			continue
		}
	predicted=$(member memory_predicted_mib "$work/out")
	taken=$(awk -v g="$(member memory_peak_growth_mib "$work/out")" \
		-v f="$(member memory_files_mib "$work/out")" 'BEGIN { print g - f }')
	awk -v j="$job" -v l="$limit" -v w="$whole" -v c="$code" -v v="$(member virtual_nodes "$work/out")" \
		-v p="$predicted" -v t="$taken" -v s="$space" 'BEGIN {
			printf "| %s | %d | %.0f | %.1f | %d | %d |", j, l, w, w / l, c, v
			printf " %.1f | %.1f | %.3f | %d |\n", p, t, t / p, s }'
	awk -v w="$whole" -v l="$limit" -v p="$predicted" -v t="$taken" \
		'BEGIN { exit !(w >= 16 * l && t <= 1.05 * p && t >= 0.95 * p) }' || {
		echo "!! $job: less than 16 times, or more than 5 % off"; status=1; }
done <<'T'
images 160 768
text 160 768
T
for job in images text; do
	echo
	echo "\`$job\` in one pass:"
	echo '```'
	fold -s -w 150 "$work/refusal.$job" | sed 's/ *$//'
	echo '```'
done
cat <<'Y'

## Eight devices of one thread beside one device of eight

What `run --dry-run` says of bench/jobs/gpt-50k.yaml with `workers.devices: auto:8`: every division of 8
cores, and the one that is chosen. Devices of a worker share parameters and optimizer; each has gradients and
activations of its own.
Y
for space in unlimited 2200 1500 1250; do
	echo
	[ $space = unlimited ] && echo 'Without a bound:' ||
		echo "In an address space of $space MiB (\`ulimit -v\`):"
	echo '```'
	(ulimit -v "$([ $space = unlimited ] && echo unlimited || echo $((space * 1024)))"
	MALLOC_ARENA_MAX=1 "$heddle" run bench/jobs/gpt-50k.yaml --dry-run -s workers.devices=auto:8 2>&1 \
		|| true) |
		sed -n 's/^ *\(devices: .*\)/\1/p; s/^ *\(memory: .*\)/\1/p; s/^heddle: //p' |
			fold -s -w 150 | sed 's/ *$//'
	echo '```'
done
exit $status
