#!/bin/bash
# A run on the nodes that Slurm gives: from 2 to 4 of them, one batch job each. From a login node, in a
# folder that the nodes share:
#
#	examples/launch/slurm.sh                # the default partition
#	examples/launch/slurm.sh lab            # partition lab
#
# The end has the digest of the same job on one device, whichever nodes came and went.
set -eu
heddle=${HEDDLE_BIN:-heddle} partition=${1:-auto}
command -v sbatch >/dev/null || { echo "no sbatch here: run it on a machine that submits to Slurm"; exit 2; }
work=$(mktemp -d "$PWD/heddle-slurm.XXXXXX")
trap 'rm -rf "$work"' EXIT

cat >"$work/job.yaml" <<END
job: {name: slurm, seed: 1, steps: 300, kernels: portable}
model: {use: "builtin:mlp", args: {input: [1, 20, 20], hidden: [60, 40], classes: 4}}
data: {kind: synthetic, count: 1000}
batch: {global: 480, virtual_nodes: 12}
launch: {kind: slurm, slurm: {time: "00:10:00", partition: $partition}}
END
"$heddle" run "$work/job.yaml" --out "$work/run" --nodes 2..4
"$heddle" run "$work/job.yaml" --out "$work/alone" --launch local --devices 1 -q
"$heddle" ckpt diff "$work/alone" "$work/run"
