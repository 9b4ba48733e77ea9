#!/bin/bash
# tools/holders.sh says of each return to a checkpoint whether a stage had lost all its workers, and fails if
# none had.
set -eu
source=${SOURCE_DIR:-$(cd "$(dirname "$0")/.." && pwd)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/plan"

# two pipelines of two ranks; then one, whose ranks run two stages each
cat >"$work/plan/0001.plan" <<'END'
plan 1
cause "view 1: workers 5 6 7 8; 1f1b: 2 stages, 2 pipelines of 2 devices"
stages 2
workers 0:1 1:0 2:2 3:3
0: PIN0@0 LD0.0 F0.0 SA0.0>1 RG0.0<1 B0.0 RED0 NORM STEP0@1
1: PIN1@0 RA1.0<0 F1.0 B1.0 SG1.0>0 RED1 NORM STEP1@1
2: PIN0@0 LD0.1 F0.1 SA0.1>3 RG0.1<3 B0.1 RED0 NORM STEP0@1
3: PIN1@0 RA1.1<2 F1.1 B1.1 SG1.1>2 RED1 NORM STEP1@1
END
cat >"$work/plan/0002.plan" <<'END'
plan 2
cause "view 2: workers 5 9 12; interleaved: 4 stages, 1 pipeline of 2 devices"
stages 4
workers 0:0 1:1
0: F0.0 F2.0 B2.0 B0.0
1: F1.0 F3.0 B3.0 B1.0
END

event()         # kind, step, membership, more
{
	printf '{"v":1,"t":1.5,"kind":"%s","step":%d,"membership":%d%s}\n' "$1" "$2" "$3" "${4:-}"
}
lost() { event lost "$1" "$2" ",\"worker\":$3,\"text\":\"its links are closed\""; }
restore() { event restore "$1" "$2" ',"text":"no worker holds the state"'; }

expect()        # status, what it prints; the events come on stdin
{
	local status=0
	cat >"$work/events.ndjson"
	"$source/tools/holders.sh" "$work" >"$work/out" 2>&1 || status=$?
	[ "$status" = "$1" ] && [ "$(cat "$work/out")" = "$2" ] && return
	echo "holders_test: expected exit $1 and '$2', got exit $status and:"
	cat "$work/out"
	exit 1
}

# workers 6 and 7 have stage 0
{ lost 3 1 6; lost 4 1 7; restore 4 1; } | expect 0 'step 4, membership 1: lost stage 0 (of 6 7)'
{ lost 3 1 6; lost 4 1 5; restore 4 1; } | expect 1 'step 4, membership 1: WRONG, each stage had a holder'
{ lost 3 1 8; restore 4 1; } | expect 1 'step 4, membership 1: WRONG, each stage had a holder'
{ event process_ended 3 1 ',"worker":8'; lost 4 1 5; restore 4 0; } |
	expect 0 'step 4, membership 1: lost stage 1 (of 5 8)'
# those of a chunk more; worker 12 stands by
{ lost 3 2 9; restore 4 2; } | expect 0 'step 4, membership 2: lost stage 1 (of 9) stage 3 (of 9)'
{ lost 3 2 12; restore 4 2; } | expect 1 'step 4, membership 2: WRONG, each stage had a holder'
# a worker that is about to get its state has none; after a step it has
moves() { event moves 9 1 ',"text":"700 bytes of state move, to workers 9 12"'; }
{ moves; lost 9 2 5; restore 9 2; } |
	expect 0 'step 9, membership 2: lost stage 0 (of 5) stage 1 (of 9) stage 2 (of 5) stage 3 (of 9)'
{ moves; lost 9 2 12; restore 9 2; } | expect 0 'step 9, membership 2: lost stage 1 (of 9) stage 3 (of 9)'
{ moves; event checkpoint_done 10 2; lost 10 2 12; restore 10 2; } |
	expect 1 'step 10, membership 2: WRONG, each stage had a holder'
# after a return they hold nothing under their names of before
{ lost 3 1 6; lost 4 1 7; restore 4 1; restore 2 1; } | expect 0 'step 4, membership 1: lost stage 0 (of 6 7)
step 2, membership 1: lost stage 0 (of 6 7) stage 1 (of 5 8)'
restore 4 3 | expect 0 'step 4: unknown, plan 3 is not there'
event view 4 1 | expect 0 ''
echo "12 returns judged"
