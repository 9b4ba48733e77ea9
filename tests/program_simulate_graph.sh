#!/bin/bash
# heddle simulate graph: every published run at each price, rates measured or given, what is refused.
. "$(dirname "$0")/program.sh"

rates()         # FLOPS
{
	echo "{\"gather_per_s\": 9e9, \"weighted_per_s\": 9e9, \"softmax_per_s\": 6e7, \"flops_per_s\": $1}"
}
rates 9e10 >fast.json
rates 1e8 >slow.json

values() { grep -o '"value_ratio":[^,]*' out | sed 's/.*://'; }

# measured here: no time is judged, all is there, and what was measured can be given back
expect 0 heddle simulate graph --json
json_ok
same "$(values | wc -l)" 12 "runs at two prices"
same "$(grep -o '"published_ratio":[^,]*' out | sed 's/.*://' | head -6 | tr '\n' ' ')" \
	"1.11 1.38 1.19 1.95 2.67 2.76 " "published ratios"
values >measured
sed 's/^{"rates":\({[^}]*}\).*/\1/' out >again.json
expect 0 heddle simulate graph --rates again.json --json
values | cmp - measured || failed "measured rates, given back, make other values"
passed "rates are measured and taken back"

expect 0 heddle simulate graph --rates fast.json --prices 2021 --model gcn --json
same "$(values | wc -l)" 4 "runs of gcn"
# an epoch of one interval after the other would take more, of all work in parallel less: 8 cores, 2 machines
# of reddit-small: 114.8e6 edges x 338 columns at 9e9, 232.9e3 rows x (4 x 602 x 128 + 6 x 128 x 41) FLOP
awk -v epoch="$(grep -o '"epoch_s":[^,]*' out | head -1 | sed 's/.*://')" 'BEGIN {
	columns = 114.8e6 * (128 + 41 + 41 + 128) / 9e9
	flops = 232.9e3 * (4 * 602 * 128 + 6 * 128 * 41) / 9e10
	least = (columns + flops) / 16
	exit !(epoch >= least && epoch <= 16 * least) }' || failed "an epoch is not its work"
expect 0 heddle simulate graph --rates fast.json --prices 2021
says 'prices of 2021-06-01'
says 'functions do not pay: a call takes '
expect 0 heddle simulate graph --rates slow.json --prices 2021
says 'functions pay'
passed "says where functions pay and where not"

# a price file: calls that are dear never pay
echo '{"date": "2030-01-01", "region": "here", "functions": [{"kind": "lambda-x86_64", "granularity_ms": 1,' \
	'"call_usd": "900", "gb_s": [{"usd": "0.00001"}]}]}' >dear.json
expect 0 heddle simulate graph --rates slow.json --prices dear.json
says 'prices of 2030-01-01'
! grep -q 'functions pay' out || failed "functions pay at 900 dollars a call"
passed "prices come from a file"

expect 2 heddle simulate graph --rates fast.json --model lenet
sed 's/lambda-x86_64/other/' dear.json >other.json
expect 2 heddle simulate graph --rates fast.json --prices other.json
says 'has no price of lambda-x86_64'
# before a core is measured
expect 3 heddle simulate graph --prices 1999
says 'prices 1999: 2020, 2021 and 2025 come with this program'
echo '{"gather_per_s": 1}' >few.json
expect 3 heddle simulate graph --rates few.json
says 'weighted_per_s'
rates 0 >zero.json
expect 3 heddle simulate graph --rates zero.json
says 'flops_per_s is 0: it is between 1 and'
sed 's/}/, "cutt": 1}/' fast.json >word.json
expect 3 heddle simulate graph --rates word.json
says 'cutt'
rates 1 | sed 's/9e9/1/g; s/}/, "memory_mb": 128, "function_bytes_s": 1}/' >least.json
expect 2 heddle simulate graph --rates least.json
says 'too long to be priced'
expect 3 heddle simulate graph --rates absent.json
passed "what is missing or wrong is said"
