#!/bin/bash
# staged.sh -- the job that pipelines are measured by, and the program; pipeline.sh and steady.sh read it
# after machine.sh. Sets heddle, work (a folder that goes away), job, pace (HD_BENCH_PACE).
me=$(basename "$0" .sh)
heddle=$(readlink -f "${HEDDLE_BIN:-build/release/heddle}")
[ -x "$heddle" ] || { echo "$me: $heddle is missing; run ./dev build first" >&2; exit 2; }
pace=${HD_BENCH_PACE:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/job.yaml" <<'END'
job: {name: pipeline, seed: 3, steps: 1000}
model: {use: "builtin:gpt", args: {layers: 8, width: 128, heads: 4, context: 64, vocab: 256}}
data: {kind: synthetic, count: 512}
batch: {global: 64, virtual_nodes: 16}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 100000 steps, keep: 1}
eval: {every: 0}
trace: {digest: 1000}
END
job=${HD_BENCH_JOB:-$work/job.yaml}

# the keys of a schedule: one of delayed updates is another job
keys_of() { echo "-s parallel.schedule=$1"; [ "$1" != 2bw ] || echo "-s optim.update=2bw"; }
