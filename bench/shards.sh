#!/bin/bash
# shards.sh -- what model.shards costs on one device, and what it leaves alone: a GPT in 1, 2, 4 and 8 shards.
# Median step of HD_BENCH_REPEAT (9) in turns, each beside one shard's; losses of ten steps relative to one
# shard's; the state on one and on three devices. Quote ratios, on a machine that does nothing else.
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
heddle=${HEDDLE_BIN:-build/release/heddle}
[ -x "$heddle" ] || { echo "bench: $heddle is missing; run ./dev build first" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "# $(date -u +%F) $("$heddle" version | head -n 1), $(with_load)"
cat >"$work/job.yaml" <<'END'
job: {name: shards, seed: 5, steps: 10}
model: {use: builtin:gpt, args: {layers: 4, width: 256, heads: 8, context: 128, vocab: 256}}
data: {kind: synthetic, count: 400}
batch: {global: 16, virtual_nodes: 4}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
END
median() { sort -g | awk '{ x[NR] = $1 } END { print x[int((NR + 1) / 2)] }'; }
step_ms()
{
	"$heddle" bench step "$work/job.yaml" --devices 1 --repeat 3 --json -s model.shards="$1" |
		sed -n 's/.*"step_ms_median":\([0-9.]*\).*/\1/p'
}
losses() { sed -n 's/.*"loss":\([^,]*\),.*/\1/p' "$1/metrics.ndjson"; }
state() { "$heddle" ckpt digest "$1"; }
printf '%7s %12s %10s %16s %12s\n' shards 'step ms' 'of one' 'losses differ by' 'same state'
for t in 1 2 4 8; do
	: >"$work/one"
	: >"$work/here"
	for _ in $(seq "${HD_BENCH_REPEAT:-9}"); do step_ms 1 >>"$work/one"; step_ms "$t" >>"$work/here"; done
	for devices in 1 3; do
		"$heddle" run "$work/job.yaml" -q --devices $devices --out "$work/$t.$devices" \
			-s model.shards="$t" 2>"$work/err"
	done
	a=$(median <"$work/one") b=$(median <"$work/here")
	off=$(paste <(losses "$work/1.1") <(losses "$work/$t.1") |
		awk '{ d = ($1 - $2) / $1; if (d < 0) d = -d; if (d > most) most = d }
			END { printf "%.1e", most }')
	same=no
	[ "$(state "$work/$t.1")" != "$(state "$work/$t.3")" ] || same=yes
	printf '%7s %12.3f %10.3f %16s %12s\n' "$t" "$b" \
		"$(awk -v a="$a" -v b="$b" 'BEGIN { print b / a }')" "$off" "$same"
done
