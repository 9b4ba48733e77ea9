#!/bin/bash
# heddle plan show, plan check, plan draw, heddle simulate: schedules by name and by file.
. "$(dirname "$0")/program.sh"

expect 0 heddle plan show --schedule zb-h1 -p 2 -m 4
says '0: F0.0 F0.1 I0.0 W0.0 F0.2 I0.1 W0.1 F0.3 I0.2 W0.2 I0.3 W0.3'
cp out zb.txt
expect 0 heddle plan show zb.txt
cmp -s out zb.txt || failed "a printed schedule does not print back"
expect 0 heddle plan show --schedule help
names=$(awk '/^[a-z0-9]/ { print $1 }' out)
for name in data-parallel gpipe 1f1b zb-v 2bw; do
	grep -qx "$name" <<<"$names" || failed "no $name in: $names"
done
for name in $names; do
	expect 0 heddle plan show --schedule $name -p 3 -m 8
	mv out one.txt
	expect 0 heddle plan show one.txt
	cmp -s out one.txt || failed "$name does not print back"
	expect 0 heddle simulate --schedule $name -p 3 -m 8 --costs 1,2 --json
	for key in makespan bubble_over_ideal span_idle peak_activations; do says "\"$key\":"; done
	mv out named.json
	expect 0 heddle simulate one.txt --costs 1,2 --json
	cmp -s out named.json || failed "$name: a file of it simulates to something else"
done
expect 0 heddle plan show --schedule interleaved -p 2 -m 4 -v 3
says 'stages=6'
expect 0 heddle plan show --schedule interleaved -p 2 -m 4 --chunks 3 --json
says '"schedules":"## interleaved p=2 m=4 stages=6'
expect 0 heddle plan show --schedule 1f1b-rr -p 3 -m 4 --replicas 2,1
says '2: F1.0 B1.0 F1.1'
expect 0 heddle plan show --schedule 2bw -p 2 -m 2 --complete
says '1: LD1.0 RA1.0<0 F1.0@-1 B1.0@-1 SG1.0>0 LD1.1 RA1.1<0 F1.1@-1 B1.1@-1 SG1.1>0 REL1@-1 STEP1@1 PIN1@1'
cp out whole.txt
expect 0 heddle plan check whole.txt --transport buffered
expect 0 heddle plan show whole.txt --complete
cmp -s out whole.txt || failed "a complete schedule is completed again"
expect 0 heddle plan check whole.txt --repeat 2
says 'ns each'
passed "show: every name, and what is printed is read again"

expect 0 heddle simulate --schedule 1f1b -p 8 -m 16 --costs 1,2 --json
same "$(number makespan)" 69 "makespan"
expect 0 heddle simulate --schedule zb-v -p 2 -m 4 --costs 1,1,1 --comm 0.1 --json
same "$(number makespan)" 12.8 "makespan with a tenth a hop"
says '"peak_activations":[2'
expect 0 heddle simulate --schedule 2bw -p 4 -m 4 --costs 1,2 --periods 6 --json
says '"steps":6,"steady_bubble":0'
expect 0 heddle simulate --schedule 2bw -p 4 -m 4
says 'steady bubble'
says 'bubble over ideal'
expect 0 heddle simulate --schedule gpipe -p 2 -m 4 --repeat 3
says 'gpipe p=2 m=4 stages=2: 16 instructions in'
expect 2 heddle simulate --schedule gpipe -p 2 -m 4 --repeat 0
expect 0 heddle simulate --schedule zb-auto -p 4 -m 8 --costs 1,1,1 --cap 4 --json
says '"span_idle":'
expect 2 heddle simulate --schedule zb-auto -p 4 -m 8 -v 2 --cap 0.4
says 'a rank holds at least one chunk, 1/2'
passed "simulate: figures of the plan documents"

for mode in lazy eager full; do
	expect 0 heddle plan show --schedule 1f1b -p 4 -m 6 --redundancy $mode
	says 'SHIP3>2'
	cp out shadows.txt
	expect 0 heddle plan check shadows.txt --transport buffered
	says accepted
	expect 0 heddle plan show shadows.txt
	cmp -s out shadows.txt || failed "$mode does not print back"
	sed 's/ STEPx1@1//' shadows.txt >broken.txt
	expect 2 heddle plan check broken.txt
	says 'K35  plan: rank 0 never updates its shadow of stage 1'
	expect 0 heddle simulate shadows.txt --costs 1,2
done
for case in none:105 lazy:105 eager:106 full:155; do
	expect 0 heddle simulate --schedule 1f1b -p 12 -m 24 --costs 1,2 --redundancy ${case%:*} --json
	same "$(number makespan)" "${case#*:}" "makespan, ${case%:*}"
done
expect 0 heddle simulate --schedule 1f1b -p 12 -m 24 --costs 1,2 --redundancy eager --shadows receives --json
same "$(number makespan)" 128 "makespan, shadows before receives"
expect 0 heddle plan draw --schedule 1f1b -p 4 -m 6 --redundancy full
says 'f b those of shadows'
expect 0 heddle plan draw --schedule 1f1b -p 4 -m 6 --redundancy full -o shadows.svg
grep -q 'rank 0 Bx5' shadows.svg || failed "the picture shows no backward of a shadow"
expect 2 heddle plan show --schedule zb-v -p 4 -m 8 --redundancy eager
says '--redundancy eager: rank 0 runs stages 0 and 7: with shadows a rank has one stage'
expect 2 heddle simulate --schedule 1f1b -p 4 -m 8 --shadows gaps
says 'give that too'
expect 0 heddle plan show --schedule 1f1b -p 4 -m 4 --costs 1,2 --redundancy eager --lose 2 --lose-at 0.4
says '1:
	PIN2@0 ONx2.0 ONx2.1 B1.0 SGk1.0>0 RA1.3<0 RG2.0<3 B2.0 ONx2.2 SAk2.2>3 RG2.1<3 B2.1 HG2.1 F1.3 HA1.3
	B1.1'
says '3: RSG3.0>1'
says 'STEP1@1 STEP2@1'
# it is no whole step: nothing is found in it that would be a fault of one
cp out rest.plan
for verb in "plan check" simulate "plan draw" "plan show --lose 0"; do
	expect 2 heddle $verb rest.plan
	says 'rest.plan: what is left of a step after a loss'
	! grep -q 'K[0-9]\|before forward' out err || failed "$verb finds faults of a whole step"
done
sed 's/, without rank 2 from 0.4 of the step on//' rest.plan >unnamed.plan
expect 2 heddle plan check unnamed.plan
says 'refused  1f1b p=4 m=4 stages=4'
expect 2 heddle plan show --schedule 1f1b -p 4 -m 4 --redundancy eager --lose 2,3
says "ranks 2 and 3 are lost: the one held the shadow of the other's stage 3"
expect 2 heddle plan show --schedule 1f1b -p 4 -m 4 --lose 2
says 'there are no shadow stages: give --redundancy MODE'
expect 2 heddle plan show --schedule 1f1b -p 4 -m 4 --redundancy eager --lose 4
says 'ranks are 0 to 3'
expect 0 heddle plan place --device-zones a,a,a,b,b,b,a,b,b -p 4
says 'pipeline 1:'
says 'waits: 8 (b)'
says 'neighbours in one zone: 0'
says 'zones that copies of stages miss: 0'
expect 0 heddle plan place --device-zones a,b,a -p 3 --json
says '"neighbours_in_one_zone":1'
expect 2 heddle plan place --device-zones a,b -p 3
says '2 devices are too few'
expect 2 heddle plan place --device-zones a,,b -p 2
says 'a name for each device'
passed "redundancy: shadows are shown, proved, drawn, costed"

expect 2 heddle simulate --schedule dualpipev -p 4 -m 6
says 'dualpipev needs m >= 2p: m = 6, p = 4; the nearest that works: -m 8'
expect 2 heddle simulate --schedule 2bw -p 4 -m 3
says 'the nearest that works: -m 4'
expect 2 heddle plan show --schedule 1f1d -p 4 -m 3
says 'did you mean 1f1b?'
expect 2 heddle plan show --schedule gpipe -p 4
says 'needs -p RANKS and -m VIRTUAL-NODES'
expect 2 heddle plan show
says 'either a FILE or --schedule NAME'
expect 2 heddle plan show zb.txt -p 3
says '--ranks belongs to --schedule'
expect 0 heddle plan show --schedule help --json
json_ok
[ "$(grep -c '^{"schedule":"' out)" -ge 15 ] || failed "a line of JSON for every schedule"
for extra in '--group 2' '--cap 4' '--replicas 2,1'; do
	expect 2 heddle simulate --schedule 1f1b -p 3 -m 4 $extra
	says "${extra% *} is of the schedule"
done
expect 2 heddle simulate --schedule 1f1b -p 3 -m 4 -v 0
says '-v 0: a rank holds a chunk'
expect 2 heddle simulate --schedule 2bw -p 2 -m 4 --periods 0
says 'periods 0: 1 or more'
for verb in simulate 'plan draw'; do
	expect 2 heddle $verb --schedule 1f1b -p 2 -m 4 --periods 3
	says '--periods: 1f1b p=2 m=4 stages=2 has none, its updates are not delayed'
	expect 2 heddle $verb zb.txt --periods 3
	says 'has none, its updates are not delayed'
done
expect 2 heddle plan show --schedule 1f1b-rr -p 3 -m 4 --replicas 2,x
says '--replicas 2,x'
expect 2 heddle simulate zb.txt --costs 1
says '--costs 1: it is F,B|F,I,W'
expect 2 heddle simulate zb.txt --costs 1,-2
says '--costs 1,-2'
expect 2 heddle simulate zb.txt --costs 0,0
says 'at least one is above 0'
expect 2 heddle simulate zb.txt --costs 1,2 --comm 1,2
says '--comm 1,2: it is C'
printf '0: F0.0 B0.0\n1: B1.0 F1.0\n' >circle.txt
expect 2 heddle simulate circle.txt
says 'rank 1, #0 B1.0: backward before forward'
printf '0: F0.0 X\n' >bad.txt
expect 3 heddle simulate bad.txt
says 'bad.txt:1:9'
printf '# nothing\n' >empty.txt
expect 3 heddle plan show empty.txt
says 'there is no schedule in it'
expect 3 heddle plan show none.txt
passed "what cannot work is refused with its reason"

if schedules=$(material data/schedules.txt); then
	expect 0 heddle plan check "$schedules"
	same "$(grep -c ^accepted out)" 9 "accepted schedules"
	expect 2 heddle plan check "$schedules" --transport rendezvous
	same "$(grep -c ^accepted out)" 1 "schedules that end with blocking transfers"
	says 'K8   plan: with transport rendezvous ranks 0 and 1 wait for each other'
	says 'is enough'
else
	echo "skip: known schedules (no data/schedules.txt)"
fi
expect 0 heddle plan check zb.txt --transport buffered --credits 2
expect 2 heddle plan check circle.txt
says 'refused  circle.txt'
says 'K6   plan: rank 1, #0 B1.0: backward before forward'
says '         rank 1 from #0: [B1.0] F1.0'
expect 2 heddle plan check circle.txt --json
says '"findings":[{"rule":"K6","text":"plan: rank 1, #0 B1.0'
says '"fragment":["rank 1 from #0: [B1.0] F1.0"]'
expect 3 heddle plan check bad.txt
expect 3 heddle plan check empty.txt
expect 2 heddle plan check zb.txt --credits 2
says '--credits belongs to --transport buffered'
printf '0: F0.0 B0.0 F0.1 B0.1\n1: F1.1 B1.1 F1.0 B1.0\n' >knot.txt
expect 2 heddle plan check knot.txt
says 'K7   plan: these instructions wait for each other: rank 0 #1 B0.0 -> rank 1 #0 F1.1 -> rank 0'
cat >tight.txt <<'END'
0: F0.0 SA0.0>1 F0.1 SA0.1>1 RG0.0<1 B0.0 RG0.1<1 B0.1
1: RA1.0<0 RA1.1<0 F1.0 F1.1 B1.0 SG1.0>0 B1.1 SG1.1>0
END
expect 2 heddle plan check tight.txt --transport buffered --credits 1
says 'N = 2 is enough'
expect 0 heddle plan check tight.txt --transport buffered --credits 2
sed 's/@-1/@0/; s/^update 2bw/update 2bw/' whole.txt >wrong.txt
expect 2 heddle plan check wrong.txt
says 'must use version 0 of stage'
sed 's/ REL1@-1//' whole.txt >kept.txt
expect 2 heddle plan check kept.txt
says 'K14 '
printf '%s\n' 'update 2bw' 'section prologue' '0: F0.0' '1: F1.0 B1.0' 'section period' '0: F0.0 B0.-1' \
	'1: F1.0 B1.0' 'section epilogue' '0: B0.-1' '1:' >few.txt
expect 2 heddle plan check few.txt
says '2bw needs m >= p; m = 1, p = 2; the nearest that works: m = 2'
write_jobs 2
expect 0 heddle run mlp.yaml --devices 2 --out run -q
expect 0 heddle plan check "$(find run/plan -name '*.plan' | head -n 1)"
says 'accepted run/plan'
sed 's/ NORM / STEP0 NORM /' "$(find run/plan -name '*.plan' | head -n 1)" >twice.plan
expect 2 heddle plan check twice.plan
says 'K16 '
grep 'K16 ' out >finding
for verb in simulate 'simulate --json' 'plan draw'; do
	expect 2 heddle $verb twice.plan
	case $verb in *json) says '"rule":"K16"' ;; *) says "$(cat finding)" ;; esac
	expect 0 heddle $verb "$(find run/plan -name '*.plan' | head -n 1)"
done
cp "$(find run/plan -name '*.plan' | head -n 1)" one.plan
expect 0 heddle plan diff one.plan one.plan
sed 's/^map .*/map 0-4:0 5-12:1/' one.plan >moved.plan
expect 5 heddle plan diff one.plan moved.plan
says 'virtual nodes 5-6 of stage 0: rank 0 -> rank 1'
heddle plan show --schedule gpipe -p 4 -m 2 >thin.txt
expect 0 heddle plan check thin.txt
says 'warning: the bubble is 150 %'
expect 0 heddle plan check thin.txt --json
says '"warnings":["the bubble is 150 %'
heddle plan show --schedule gpipe -p 4 -m 16 >wide.txt
expect 0 heddle plan check wide.txt
same "$(grep -c warning out)" 0 "warnings of a good schedule"
passed "check: schedules and plans, accepted or refused with rule and place"

expect 0 heddle plan draw --schedule 1f1b -p 2 -m 2
says '   1 |   F0 B0=== F1 B1===       |'
expect 0 heddle plan draw zb.txt --costs 1,2,1 -o zb.svg
grep -q '<svg ' zb.svg || failed "no picture"
expect 2 heddle plan draw --schedule 1f1b -p 2 -m 8 --costs 1.00001,2
says 'draw a picture'
expect 0 heddle plan draw --schedule 1f1b -p 2 -m 2 --costs 1,2 --json
json_ok
says '{"does":"F1.0","start":1,"end":2},{"does":"B1.0","start":2,"end":4}'
says '{"why":"warm-up","before":0,"start":0,"end":1}'
same "$(number makespan)" 9 "makespan of the drawing"
expect 0 heddle plan draw zb.txt --json -o zb.json
[ "$(wc -l <zb.json)" = 1 ] || failed "not one line a schedule"
expect 2 heddle plan draw zb.txt --json -o zb.svg
says 'is a picture, --json prints the same as data'
passed "draw: text, picture and data"

# what plan check refuses is neither simulated nor drawn
printf '0: F0.0 F0.0\n' >twice.txt
printf '0: (F0.0&F0.1) B0.0 B0.1\n' >forwards.txt
for file in twice.txt forwards.txt; do
	expect 2 heddle plan check $file
	cp out refused.out
	expect 2 heddle simulate $file
	cmp -s out refused.out || failed "simulate tells of $file: $(cat out)"
	expect 2 heddle plan draw $file
	cmp -s out refused.out || failed "draw tells of $file: $(cat out)"
	expect 2 heddle plan show $file --redundancy lazy
	cmp -s out refused.out || failed "show --redundancy tells of $file: $(cat out)"
	expect 2 heddle plan show $file --redundancy lazy --lose 0
	cmp -s out refused.out || failed "show --lose tells of $file: $(cat out)"
	expect 0 heddle plan show $file
done
{ echo "0:$(printf ' F0.0%.0s' {1..40}) B0.0" && echo "1:$(printf ' F1.0%.0s' {1..40}) B1.0"; } >many.txt
expect 2 heddle plan show many.txt --redundancy lazy
expect 2 heddle simulate twice.txt --json
says '"accepted":false'
printf 'place 0 0 0 7\n0: F0.0 B0.0\n' >places.txt
expect 3 heddle plan check places.txt
says 'place names the ranks of 4 stages, the lists above run 1'
passed "only sound lists are run"
