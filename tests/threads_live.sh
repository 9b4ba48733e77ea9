#!/bin/bash
# Live runs in a build with ThreadSanitizer: workers of several devices that come, go and die, on one machine
# and over TLS. No process of them may report a race; the bits are those of one device.
. "$(dirname "$0")/program.sh"
grep -q __tsan_init "$HEDDLE_BIN" || { echo "skip: $HEDDLE_BIN is not built with ThreadSanitizer"; exit 77; }
# a file for each process that reports: a killed one cannot exit with it
export TSAN_OPTIONS="log_path=$work/race ${TSAN_OPTIONS:-}"

cat >mlp.yaml <<END
job: {name: mlp, seed: 3, steps: 1000000}
model: {use: "builtin:mlp", args: {input: [1, 16, 16], hidden: [160, 64], classes: 4}}
data: {kind: synthetic, count: 1000}
batch: {global: 240, virtual_nodes: 12}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 20 steps, keep: 2}
eval: {every: 0}
trace: {digest: 1, samples: true}
workers: {detect: 10 s}
END
cat >gpt.yaml <<END
job: {name: gpt, seed: 5, steps: 1000000}
model: {use: "builtin:gpt", args: {layers: 1, width: 16, heads: 2, context: 8, vocab: 32, dropout: 0.1}}
data: {kind: synthetic, count: 60}
batch: {global: 14, virtual_nodes: 7, normalize: token}
# without clipping, and in steps without a digest, parameters go out early (ADR 214)
optim: {kind: adam, lr: 1e-2, clip: 0, schedule: {kind: linear, warmup: 2}}
checkpoint: {every: 20 steps, keep: 2}
eval: {every: 0}
comm: {sync: sharded}
trace: {digest: 3}
workers: {detect: 10 s}
END

answers() { await answers_now "$1" || failed "no coordinator of $1"; }
goes_on() { reach "$1" $(($(step "$1") + 15)); }
no_race()
{
	local report
	report=$(ls race.* 2>/dev/null | head -n 1)
	[ -z "$report" ] || {
		head -n 60 "$report"
		failed "$(ls race.* | wc -l) processes reported races, $1"
	}
}
# the run is stopped wherever it is; one device comes to the same state in as many steps
stops_with_bits_of_one()        # run, job
{
	expect 0 heddle stop "$1"
	await not answers_now "$1" || failed "$1 goes on after it was stopped"
	expect 0 heddle ckpt show "$1" --json
	expect 0 heddle run "$2" --out "$1-one" --devices 1 -q --steps "$(number step)"
	expect 0 heddle ckpt diff "$1" "$1-one"
	says IDENTICAL
	no_race "$1"
}

"$HEDDLE_BIN" run mlp.yaml --out near --workers 2 --devices 2 -q 2>log &
reach near 10
expect 0 heddle chaos kill near --target worker
answers near
expect 0 heddle scale near 3
goes_on near
expect 0 heddle chaos kill near --target coordinator
answers near
expect 0 heddle scale near 2
goes_on near
stops_with_bits_of_one near mlp.yaml
passed "no race where workers of two devices come, go and die, and their coordinator"

sed 's/lr: 1e-2/lr: 1e-2, update: 2bw/; s/layers: 1/layers: 2/; /^comm:/d' gpt.yaml >2bw.yaml
"$HEDDLE_BIN" run 2bw.yaml --out ahead --workers 2 --devices 1 -q -s parallel.mode=pipeline \
	-s parallel.schedule=2bw 2>log &
reach ahead 30
grep -q '^overlap$' ahead/plan/*.plan || failed "steps of 2bw do not overlap"
stops_with_bits_of_one ahead 2bw.yaml
passed "no race where workers begin the next step inside the one at hand"

expect 0 heddle serve --new-key key
"$HEDDLE_BIN" run gpt.yaml --out far --workers 2 --devices 1 --listen 127.0.0.1:0 --key key -q 2>log &
await test -s far/listen
"$HEDDLE_BIN" worker --join "$(cat far/listen)" --key key --devices 2 -q 2>log.guest &
guest=$!
has_three() { heddle status far --json 2>/dev/null | grep -q '"members":3'; }
await has_three || failed "the guest is no member"
goes_on far
kill -9 $guest
wait $guest 2>/dev/null
goes_on far
stops_with_bits_of_one far gpt.yaml
passed "no race with sharded state and a worker over TLS, which dies"
