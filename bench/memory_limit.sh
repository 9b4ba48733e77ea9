#!/bin/bash
# memory_limit.sh -- a model whose state is three times what any process may take. Prints a page's section:
#
#	bench/memory_limit.sh >section        (as root: it makes memory cgroups, v1 or v2)
#
# A gpt of 59 M parameters with AdamW, 678 MiB of parameters and slots, in twelve stages over as many workers;
# each worker and the coordinator in a cgroup of its own with a third of that. It trains, evaluates, writes
# checkpoints, is stopped after step 20, resumes and ends; the digest must be that of one process on one
# device without a limit. Ends with 1 if it is not, or if the kernel killed a process. About nine minutes.
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
heddle=$(realpath "${HEDDLE_BIN:-build/release/heddle}")
[ -x "$heddle" ] || { echo "memory_limit: $heddle is missing; run ./dev build first" >&2; exit 2; }
limit=226 workers=12
if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
	root=/sys/fs/cgroup most=memory.max peak=memory.peak killed=memory.events
	echo +memory >$root/cgroup.subtree_control
else
	root=/sys/fs/cgroup/memory most=memory.limit_in_bytes peak=memory.max_usage_in_bytes
	killed=memory.oom_control
fi
mkdir "$root/hd-$$-test" 2>/dev/null && rmdir "$root/hd-$$-test" ||
	{
		echo "memory_limit: no memory cgroup can be made below $root; be root there" >&2
		exit 2
	}
work=$(mktemp -d)
run=
tidy()
{
	kill $run 2>/dev/null || true
	wait
	for group in "$root/hd-$$-"*; do rmdir "$group" 2>/dev/null || true; done
	rm -rf "$work"
}
trap tidy EXIT
group()         # NAME
{
	mkdir -p "$root/hd-$$-$1"
	echo $((limit << 20)) >"$root/hd-$$-$1/$most"
}
cp README.md "$work/words.md"
cat >"$work/gpt.yaml" <<'Y'
job:   {name: limit, seed: 17, steps: 30}
model:
  use: builtin:gpt
  args: {layers: 12, width: 640, heads: 10, context: 32, vocab: 256, dropout: 0.1}
data:  {kind: text, path: words.md, split: {train: 0.9, valid: 0.1}}
batch: {global: 16, virtual_nodes: 8, normalize: token}
optim:
  {kind: adamw, lr: 3e-4, betas: [0.9, 0.99], weight_decay: 0.1, clip: 1.0,
   schedule: {kind: cosine, warmup: 10, floor: 0.05}}
eval:  {every: 10, metric: loss}
checkpoint: {every: 10 steps, keep: 2}
workers: {detect: 20 s, min_wait: 600 s}
Y
stages="-s parallel.mode=pipeline -s parallel.schedule=1f1b -s parallel.stages=$workers \
	-s parallel.recompute=stage -s comm.sync=stages"
cd "$work"

limited()       # COMMAND...: the command in a group, each process that it starts in one of its own
{
	local n=0 pid
	declare -A seen=()
	group coordinator
	(echo $BASHPID >"$root/hd-$$-coordinator/cgroup.procs"; exec "$@") >>log 2>&1 &
	run=$!
	while kill -0 $run 2>/dev/null; do
		for pid in $(pgrep -P $run); do
			[ -z "${seen[$pid]:-}" ] || continue
			seen[$pid]=1 n=$((n + 1))
			group "worker$n"
			echo "$pid" >"$root/hd-$$-worker$n/cgroup.procs" 2>/dev/null || true
		done
		sleep 0.02
	done
	wait $run || { tail -n 5 log >&2; exit 1; }
	run=
}
state() { "$heddle" ckpt digest "$1"; }

"$heddle" run gpt.yaml --devices 1 --out one -q
limited "$heddle" run gpt.yaml $stages --workers $workers --out many --steps 20
limited "$heddle" resume many --workers $workers
echo "## State that no process may hold"
echo
made_by memory_limit.sh
echo "."
echo "$limit MiB a process (cgroup), $workers workers in stages,"
echo "$(du -sm many/ckpt/step-000000030 | cut -f 1) MiB of state,"
grep -oE 'worker [0-9]+: memory: [0-9.]+ MiB' log | sort -u | awk '{ sub(":", "", $2); n++; v = $4 + 0
	if (n == 1 || v < low) low = v; if (v > high) high = v }
	END { printf "predicted %.1f to %.1f MiB a worker.\n", low, high }'
grep -h '"kind":"eval"' many/events.ndjson | tail -n 1
for one in "$root/hd-$$-"*; do
	deaths=$(grep -o 'oom_kill [0-9]*' "$one/$killed" | cut -d ' ' -f 2)
	[ "${deaths:-0}" -eq 0 ] || { echo "memory_limit: the kernel killed a process of $one" >&2; exit 1; }
done
echo "one device, no limit: $(state one)"
echo "$workers workers:      $(state many)"
[ "$(state one)" = "$(state many)" ]
