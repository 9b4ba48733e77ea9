#!/bin/bash
# A run on two machines: workers of the second join the first over TLS. Both have heddle and the data (here:
# made up, so there are none to copy).
#
# examples/launch/two-machines.sh 10.0.0.1 second # from the first, whose address is 10.0.0.1; ssh knows the
# other as "second"
#
# Without arguments both are this machine, one beside the other: what the tests run.
set -eu
heddle=${HEDDLE_BIN:-heddle} address=${1:-127.0.0.1} second=${2:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# mode 0600; it leaves this machine by a way that you trust
"$heddle" serve --new-key "$work/key"
cat >"$work/job.yaml" <<END
job: {name: two, seed: 1, steps: 3000}
model: {use: "builtin:mlp", args: {input: [1, 20, 20], hidden: [200, 100], classes: 4}}
data: {kind: synthetic, count: 1000}
batch: {global: 480, virtual_nodes: 12}
END
"$heddle" run "$work/job.yaml" --out "$work/run" --workers 1 --devices 1 --listen "$address:0" \
	--key "$work/key" -q &
run=$!
until [ -s "$work/run/listen" ]; do kill -0 $run; sleep 0.1; done
where=$(cat "$work/run/listen")
if [ -n "$second" ]; then
	scp -q "$work/key" "$second:heddle.key"
	ssh "$second" heddle worker --join "$where" --key heddle.key
else
	"$heddle" worker --join "$where" --key "$work/key" --devices 1
fi
wait $run
"$heddle" ckpt digest "$work/run"                        # the line of one machine alone
