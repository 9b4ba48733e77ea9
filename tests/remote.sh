# remote.sh -- what the tests of workers of other machines share (program_remote.sh, program_remote_far.sh):
# a job that lasts until it is stopped, and how many members a run has. Sourced after program.sh.
#
#	"${paced[@]}" "$HEDDLE_BIN" run long.yaml ... &
#	ends_well RUN WHAT         # stops it; in as many steps one device has the same bits

# What is waited for is that workers meet, not that they compute: a step computes next to nothing and waits
# 12 ms. A build without failpoints computes more instead.
global=960 paced=(env)
! has_failpoints || { global=48; paced=(env HD_FAIL=step.begin:delay=12); }

cat >long.yaml <<END
job: {name: long, seed: 3, steps: 1000000}
model: {use: "builtin:mlp", args: {input: [1, 20, 20], hidden: [60, 40], classes: 4}}
data: {kind: synthetic, count: 1000}
batch: {global: $global, virtual_nodes: 12}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 400 steps, keep: 2}
eval: {every: 0}
trace: {digest: 1}
workers: {detect: 500 ms}
END

listens() { await test -s "$1/listen" && cat "$1/listen"; }
members() { heddle status "$1" --json 2>/dev/null | grep -o '"members":[0-9]*' | head -n 1 | cut -d: -f2; }
has_now() { [ "$(members "$1" || true)" = "$2" ]; }
has_members() { await has_now "$1" "$2" || failed "$1 has $(members "$1") members, not $2"; }

ended() { local status=0; wait "$1" || status=$?; same "$status" "$2" "exit code of $3"; }
all_recorded()     # run, what it was; after has_bits_of_one
{
	says IDENTICAL
	says 'digest logs agree'
	same "$(grep -o '"step":[0-9]*' "$1/metrics.ndjson" | sort -t: -k2n -u | wc -l)" "$steps" \
		"steps with a record, $2"
}
ends_well()        # run, what it was; the process of the run is $run
{
	stops_with_bits_of_one "$1" long.yaml "$2"
	all_recorded "$1" "$2"
}
taken_over_ends_well()     # the same of a run whose process is gone, that another one coordinates
{
	expect 0 heddle stop "$1"
	await not answers_now "$1" || failed "$1 does not stop"
	has_bits_of_one "$1" long.yaml "$2"
	says IDENTICAL
}
