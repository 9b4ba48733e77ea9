#!/bin/bash
# pull.sh -- what orders are worth where a forward pass waits for parameters that come over a link, as a
# worker that serves has it: `heddle bench pull` on whole models. Prints a table of docs/results/links.md.
#
#	bench/pull.sh                   # some ten minutes
#	MODELS="vgg16 resnet50 inception" MBIT="1000" DELAYS="0 5" COMPUTING="0.6 1 2" ROUNDS=3
#
# Parameters of the model as it is published, batches of 8 rows; ops take what they are costed at, all by
# one factor: so that they take COMPUTING times what transfers take. Ratios are of one round, whose random
# order is another one each time; the middle one of ROUNDS is given.
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
heddle=$(realpath "${HEDDLE_BIN:-build/release/heddle}")
[ -x "$heddle" ] || { echo "bench: $heddle is missing; run ./dev build first" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# one: rows of $model at $mbit, $delay, $computing
one()
{
	"$heddle" bench pull "$work/job.yaml" --rate "$mbit" --delay "$delay" --computing "$computing" \
		--repeat "${ROUNDS:-3}" --json >"$work/rows" || { echo "| $model | failed |"; return; }
	python3 - "$work/rows" "$model" "$computing" <<'END'
import json, sys
rows = [json.loads(x) for x in open(sys.argv[1])]
for r in rows[1:]:
    assert r["correct"] and not r["displaced"], r
    print("| %s | %.1f | %d | %d | %s | %.2f | %.0f | %s | %.0f | %.0f | %.3f | %.3f |" % (sys.argv[2],
        r["bytes"] / 1e6, r["rate_mbit"], r["delay_ms"], sys.argv[3], r["gain"], rows[0]["time_ms"],
        r["mode"], r["time_ms"], r["predicted_ms"], r["over_random"], r["efficiency"]))
END
}

echo "$(date -u +%Y-%m-%d), $("$heddle" version | sed -n 1p), $(with_load), ${ROUNDS:-3} rounds"
echo
echo "| model | transfers, MB | Mbit/s | delay, ms | computing / transfers | S | random, ms | order | ms |" \
	"predicted, ms | random / it | E |"
echo "|---|--:|--:|--:|--:|--:|--:|---|--:|--:|--:|--:|"
for model in ${MODELS:-vgg16 resnet50 inception}; do
	cat >"$work/job.yaml" <<END
job: {name: pull, seed: 3, steps: 10}
model: {use: 'builtin:$model'}
data: {kind: synthetic, count: 96}
batch: {global: 8, virtual_nodes: 1}
optim: {kind: momentum, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
END
	for mbit in ${MBIT:-1000}; do
		for delay in ${DELAYS:-0}; do
			for computing in ${COMPUTING:-0.6 1 2}; do one; done
		done
	done
done
