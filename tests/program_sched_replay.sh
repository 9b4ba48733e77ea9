#!/bin/bash
# heddle sched replay, sched bench: a log of decisions holds everything and is made again to the byte; a list
# of jobs is simulated.
. "$(dirname "$0")/program.sh"

cat > rates.json <<'J'
{"v100": {"('A', 1)": {"null": 10.0, "('A', 1)": [6.0, 6.0]}, "('B', 2)": {"null": 4.0}},
 "k80": {"('A', 1)": {"null": 2.0, "('A', 1)": [1.5, 1.5]}, "('B', 2)": {"null": 1.0}}}
J
heddle sched gen --count 60 --seed 5 --rate 40 > gen.trace
python3 - <<'P'
import re
rows = [l.rstrip("\n").split("\t") for l in open("gen.trace")]
with open("jobs.trace", "w") as f:
    for r in rows[:40]:
        r[0], r[6] = ("A", "1") if int(r[6]) == 1 else ("B", "2")
        r[5] = str(min(float(r[5]), 20000.0))
        f.write("\t".join(r) + "\n")
P
printf '%s\t%s\tLinux\t%s\t2020-01-%s\n' z1 v100 3.5 01T00:00:00 z1 k80 0.4 01T00:00:00 \
	z1 v100 1.25 01T06:00:00 z2 v100 0.9 02T00:00:00 > p.tsv
printf '0,add,a\n0,add,b\n4000000,add,c\n15000000,remove,a\n' > spot.csv

# each kind of given once; the log must need none of these files
one() { # NAME OPTIONS...
	local name=$1
	shift
	mkdir "$name.d"
	expect 0 heddle sched simulate --trace jobs.trace --cluster v100:2,k80:3 "$@" \
		--log "$name.d/log.ndjson"
	head -c 9 "$name.d/log.ndjson" | grep -q '^{"log":1,' ||
		failed "$name: the first line is not the setting"
	cd "$name.d" || exit 1
	expect 0 heddle sched replay log.ndjson -o again.ndjson
	says 'the same, byte for byte'
	cmp -s log.ndjson again.ndjson || failed "$name: the log made again is another"
	# jobs in any order of lines
	{ head -1 log.ndjson; tail -n +2 log.ndjson | grep -v '^{"job"'; grep '^{"job"' log.ndjson |
		tac; } > mixed.ndjson
	expect 0 heddle sched replay mixed.ndjson -o again.ndjson
	cmp -s log.ndjson again.ndjson || failed "$name: the order of the job lines matters"
	cd ..
}
one plain --policy isolated --throughputs rates.json
one faithful --policy fifo_perf --throughputs rates.json --faithful
one failing --policy isolated --throughputs rates.json --revoke v100:2 --lost 30 \
	--tune failures=1e-4,away=300,kappa=2 --seed 9 --switching 10,2,5,1
one spot --policy fifo --throughputs rates.json --spot k80:spot.csv
one prices --policy isolated --throughputs rates.json --price k80:0.5 --prices p.tsv --deadline-factor 4
one entities --policy gandiva --throughputs rates.json --entities a:1,b:2
one stopped --policy isolated --throughputs rates.json --tune stop=30000
one speeds --policy sjf --speed k80:0.5
expect 3 heddle sched replay plain.d/log.ndjson -o /proc/none/again.ndjson
passed "a log alone makes the same decisions again, whatever was given"

# no type holds it, and devices come and go for ever
{ head -n 8 jobs.trace; awk -F '\t' 'BEGIN { OFS = FS } $7 == 2 { $6 = 100; print; exit }' jobs.trace; } \
	> wide.trace
expect 0 timeout 300 "$HEDDLE_BIN" sched simulate --trace wide.trace --cluster v100:1,k80:1 \
	--policy las --throughputs rates.json --revoke v100:2
says 'ended: jobs are left that the policy never gives devices'
passed "a simulation whose devices come and go ends though a job fits nowhere"

if ! heddle sched policies --json | grep -q '"built":false'; then
	one cost --policy cost --throughputs rates.json --price k80:0.5 --prices p.tsv --deadline-factor 4 \
		--tune beta=0.5,phi=0.1
	one packed --policy las-packed --throughputs rates.json
	one estimated --policy las-packed --throughputs rates.json --estimate q=0.5,r=1
	one hierarchy --policy hierarchy --throughputs rates.json --entities a:1,b:2 --entity-kind fifo
	one limited --policy las --throughputs rates.json --lp-iterations 1
	expect 0 heddle sched simulate --trace jobs.trace --cluster v100:2,k80:3 --policy las \
		--throughputs rates.json --lp-iterations 1
	says 'jobs kept the shares they had, new ones got an equal part'
	expect 0 heddle sched compare --trace jobs.trace --cluster v100:2,k80:3 --policy fifo,las \
		--throughputs rates.json --lp-iterations 1
	says '  las gave up '
	if grep -q 'fifo gave up' out; then failed "a queue solves nothing"; fi
	passed "also with policies that solve programs, or whose solver gives up"
fi

# ---- what differs is found
cp plain.d/log.ndjson changed.ndjson
line=$(grep -n '"round":\[{' changed.ndjson | sed -n 3p | cut -d: -f1)
sed -i "${line}s/\"on\":\[/\"on\":[7/" changed.ndjson
expect 5 heddle sched replay changed.ndjson
says "changed.ndjson:$line: the first decision that differs"
says 'recorded {"at":'
expect 5 heddle sched replay changed.ndjson --json
same "$(number line)" "$line" "the line in JSON"
# a job that is a second longer changes what is decided
sed '0,/"steps":/s/"steps":[0-9.]*/"steps":77777/' plain.d/log.ndjson > other.ndjson
expect 5 heddle sched replay other.ndjson
head -n -1 plain.d/log.ndjson > short.ndjson
expect 5 heddle sched replay short.ndjson
says 'it ends before the decisions do'
says 'recorded nothing more'
passed "the first decision that differs is named"

# ---- a list of jobs
expect 0 heddle sched simulate --trace jobs.trace --policy isolated --cluster v100:2,k80:3 \
	--throughputs rates.json --json
cp out want.json
expect 0 heddle sched replay jobs.trace --policy isolated --cluster v100:2,k80:3 --throughputs rates.json \
	--json
cmp -s out want.json || failed "replay of a list is not its simulation"
passed "a list of jobs is simulated"

# ---- mistakes
expect 2 heddle sched replay plain.d/log.ndjson --policy fifo
says '--policy: plain.d/log.ndjson is a log of decisions, and says everything itself'
expect 2 heddle sched replay jobs.trace --policy isolated --cluster v100:2,k80:3 --throughputs rates.json -o x
says '-o is where a log of decisions is written again'
for change in 's/"log":1,/"log":2,/' 's/"v100"/"a100"/' '0,/"job":0,/s/"job":0,/"job":1,/' \
	'0,/"scale":1/s/"scale":1/"scale":0/' 's/"weight":1/"weight":"nan"/' \
	's/"n":2/"n":-2/' '0,/{"job"/s/{"job"/{"jobs"/' 's/"name":"isolated"/"name":"isolate"/'; do
	sed "$change" plain.d/log.ndjson > bad.ndjson
	expect 3 heddle sched replay bad.ndjson
	grep -q '^heddle: bad.ndjson' err || failed "no place is named: $(cat err)"
done
head -3 plain.d/log.ndjson | sed 's/\(.*\)}/\1/' > bad.ndjson
expect 3 heddle sched replay bad.ndjson
sed 1d plain.d/log.ndjson > bad.ndjson
expect 2 heddle sched replay bad.ndjson
passed "mistakes are named with their line"

# ---- how long decisions take: that they are made, not how fast
expect 0 heddle sched bench --count 12 --repeat 1
says 'max-min in 4 parts'
expect 0 heddle sched bench --count 12 --repeat 1 --json
json_ok
expect 0 heddle sched bench --count 12 --repeat 1 --policy goodput
[ "$(grep -c goodput out)" = 2 ] && [ "$(wc -l <out)" = 3 ] || failed "the cases of one policy alone"
expect 2 heddle sched bench --count 12 --policy nosuch
says 'no row is of that policy'
expect 2 heddle sched bench --repeat 0
says '1 to 1000'
passed "sched bench has a row a case"
