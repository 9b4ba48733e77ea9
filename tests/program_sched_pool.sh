#!/bin/bash
# heddle sched simulate on devices that have prices, come and go, stand in machines; entities, deadlines,
# elastic jobs.
. "$(dirname "$0")/program.sh"

printf 'timestamp,duration,num_gpus,user\n0,1000,1,ann\n0,1000,1,bob\n0,1000,1,bob\n' > jobs.csv
costs()
{
	python3 -c "import json,sys; c=json.load(open('out'))['cost']; sys.exit(abs(c/$1-1)>1e-12)" ||
		failed "$2: $(number cost), not $1"
}
sim() { heddle sched simulate --trace jobs.csv --policy isolated --json --tune free-switching "$@"; }

# ---- prices: the job's 1000 s on one device are 3600 $/h for 500 s, then 7200
printf '%s\tgpu\tLinux\t%s\t2020-01-01T%s\n' z1 3600 00:00:00 z1 7200 00:08:20 z2 9000 00:00:00 \
	z2 36 00:15:00 > p.tsv
head -2 jobs.csv > one.csv
expect 0 heddle sched simulate --trace one.csv --policy isolated --json --tune free-switching \
	--cluster gpu:1 --prices p.tsv --zones z1
costs 1500 "the cost of 500 s at 3600 an hour and 500 s at 7200"
# in both zones the cheaper counts: from 900 s on zone z2
expect 0 heddle sched simulate --trace one.csv --policy isolated --json --tune free-switching \
	--cluster gpu:1 --prices p.tsv
costs 1301 "the cost with the cheaper zone"
expect 0 heddle sched simulate --trace one.csv --policy isolated --json --tune free-switching \
	--cluster gpu:1 --prices p.tsv --prices-from 2020-01-01T00:08:20
costs 806 "the cost from a later time on"
printf 'time,zone,type,price\n0,z1,V,3600\n' > a.csv
cat >b.json <<'END'
{"SpotPriceHistory": [{"InstanceType": "V", "AvailabilityZone": "z9", "Timestamp": "1970-01-01T00:08:20Z",
  "SpotPrice": "1800"}]}
END
expect 0 heddle sched simulate --trace one.csv --policy isolated --json --tune free-switching \
	--cluster gpu:1 --prices a.csv --price-as gpu=V
costs 1000 "the cost of a type by another name"
expect 0 heddle sched simulate --trace one.csv --policy isolated --json --tune free-switching \
	--cluster gpu:1 --prices a.csv,b.json --price-as gpu=V
costs 500 "two files are one history: the cheaper zone, whose first price holds before it"
expect 2 sim --cluster gpu:1 --zones z1
says 'are of --prices FILE'
expect 3 sim --cluster gpu:1 --prices p.tsv --zones z7
says 'no price is of the zone "z7"; the first zone is "z1"'
expect 3 sim --cluster v100:1 --prices p.tsv
says 'prices no type of the cluster; its first type is "gpu"'
expect 2 sim --cluster gpu:1 --prices p.tsv --price-as gpu=x
says 'the prices have no type "x"'
expect 2 sim --cluster gpu:1 --prices p.tsv --prices-from noon
says '"noon" is no time'
printf 'z1\tgpu\tLinux\tdear\t2020-01-01T00:00:00\n' > bad.tsv
expect 3 sim --cluster gpu:1 --prices bad.tsv
says 'bad.tsv:1:14: price'
passed "prices of several files, forms and zones"

# ---- machines come and go: two of three from 0 on, the third at 400 s; the first leaves at 700 s
printf '0,add,a\n0,add,b\n400000,add,c\n700000,remove,a\n' > spot.csv
expect 0 sim --cluster gpu:3 --spot spot.csv
same "$(number revoked)" 1 "a machine that left"
same "$(number completed)" 3 "jobs that are over"
expect 2 sim --cluster gpu:2 --spot spot.csv
says 'up to 3 machines are there at once; --cluster has 2 of gpu'
expect 2 sim --cluster gpu:3,x:1 --spot spot.csv
says 'which type is it of? --spot TYPE:FILE'
expect 0 sim --cluster gpu:3,x:1 --spot gpu:spot.csv
printf '0,add,a\n0,add,a\n' > twice.csv
expect 3 sim --cluster gpu:3 --spot twice.csv
says 'added again'
passed "machines that come and go"

# ---- a list of machines: a gang of two stands in one machine
printf 'sn,cpu_milli,memory_mib,gpu,model\nn1,1,1,1,T4\nn2,1,1,2,T4\nn3,1,1,1,P100\nn4,1,1,0,\n' > nodes.csv
printf 'timestamp,duration,num_gpus\n0,100,2\n' > gang.csv
expect 0 heddle sched simulate --trace gang.csv --policy isolated --nodes nodes.csv --log log.ndjson --json
grep -q '"on":\[2,3\]' log.ndjson || failed "the gang is not on the two devices of n2: $(cat log.ndjson)"
expect 2 sim --cluster gpu:1 --nodes nodes.csv
says 'which devices?'
printf 'sn,gpu\nn1,1\n' > bad.csv
expect 3 sim --nodes bad.csv
says 'bad.csv:1'
says '"model" is missing'
passed "machines of a list"

# ---- deadlines, entities
expect 0 sim --cluster gpu:1 --deadline-factor 2.95
same "$(number deadlines)" 3 "jobs with a deadline"
same "$(number deadlines_missed)" 2 \
	"equal thirds of one device: the first ends before 2950 s, the others later"
expect 3 sim --cluster gpu:1 --entities ann:1
says 'job 1 is of "bob", which is no entity'
expect 2 sim --cluster gpu:1 --entities ann:1,ann:2
says 'ann is named twice'
expect 2 sim --cluster gpu:1 --entities ann:0
says 'a weight above 0'
expect 2 sim --cluster gpu:1 --tune kapa=1
says 'did you mean kappa?'
expect 2 sim --cluster gpu:1 --tune kappa
says 'kappa needs a value'
expect 2 sim --cluster gpu:1 --elastic max=4
says 'runs jobs on the devices they ask for'
expect 2 sim --cluster gpu:1 --elastic min=3,max=2
says 'max no less than min'
expect 2 sim --cluster gpu:1 --elastic max=3,speedup=1:2
says 'one number for each count of devices'
passed "deadlines, entities and what else is printed"

if heddle sched policies --json | grep -q '"built":false'; then exit 0; fi
# ann has three times bob's weight: her job has more of the device than his two have each
printf 'timestamp,duration,num_gpus,user\n0,100000,1,ann\n0,100000,1,bob\n0,100000,1,bob\n' > long.csv
expect 0 heddle sched simulate --trace long.csv --policy hierarchy --cluster gpu:1 --entities ann:3,bob:1 \
	--tune stop=6000,free-switching --json
python3 - <<'P' || failed "ann has not three quarters of the device: $(cat out)"
import json
s = [j["device_s"]["gpu"] for j in json.load(open("out"))["jobs"]]
assert abs(s[0] / sum(s) - 0.75) < 0.03 and abs(s[1] - s[2]) < 400, s
P
passed "entities share by weight"
# where jobs take turns on the cheap type, starts and moves are paid for: cost holds on to devices, so nothing
# else is cheaper
heddle sched gen --count 150 --seed 1 --rate 6 > many.trace
turns="--trace many.trace --cluster v100:4,k80:8 --speed v100:3 --price v100:2.5,k80:0.6 --json"
cost_of() { python3 -c 'import json,sys; print(json.load(open("out"))["cost"])'; }
# shellcheck disable=SC2086
expect 0 heddle sched simulate $turns --policy cost
steady=$(cost_of)
# shellcheck disable=SC2086
expect 0 heddle sched simulate $turns --policy cost --tune kappa=1
loose=$(cost_of)
for policy in fifo sum las isolated; do
	# shellcheck disable=SC2086
	expect 0 heddle sched simulate $turns --policy $policy
	python3 -c "import sys; sys.exit($(cost_of) < $steady)" ||
		failed "$policy costs $(cost_of), cost itself $steady"
done
python3 -c "import sys; sys.exit($loose < $steady * 1.02)" ||
	failed "holding on saves nothing: $steady, $loose"
passed "no policy is cheaper than cost"
