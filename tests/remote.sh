# remote.sh -- what the tests of workers of other machines share (program_remote.sh, program_remote_far.sh):
# a job that lasts, its twin on one device, and how many members a run has. Sourced after program.sh.
#
#	"${paced[@]}" "$HEDDLE_BIN" run long.yaml ... &    # half a minute and more

# What is waited for is that workers meet, not that they compute: a step is a tenth of the work and a wait of
# 12 ms. A build without failpoints computes as long instead.
global=960 paced=(env)
! has_failpoints || { global=96; paced=(env HD_FAIL=step.begin:delay=12); }

cat >long.yaml <<END
job: {name: long, seed: 3, steps: 2400}
model: {use: "builtin:mlp", args: {input: [1, 20, 20], hidden: [200, 100], classes: 4}}
data: {kind: synthetic, count: 1000}
batch: {global: $global, virtual_nodes: 12}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 800 steps, keep: 2}
eval: {every: 0}
trace: {digest: 1}
workers: {detect: 500 ms}
END

listens() { await test -s "$1/listen" && cat "$1/listen"; }
members() { heddle status "$1" --json 2>/dev/null | grep -o '"members":[0-9]*' | head -n 1 | cut -d: -f2; }
has_now() { [ "$(members "$1" || true)" = "$2" ]; }
has_members() { await has_now "$1" "$2" || failed "$1 has $(members "$1") members, not $2"; }

expect 0 heddle run long.yaml --out twin --devices 1 --json -q
ends_well()        # run, what it was
{
	expect 0 heddle ckpt diff "$1" twin
	says IDENTICAL
	says 'digest logs agree'
	same "$(grep -o '"step":[0-9]*' "$1/metrics.ndjson" | sort -t: -k2n -u | wc -l)" 2400 \
		"steps with a record, $2"
}
