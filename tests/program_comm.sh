#!/bin/bash
# heddle bench comm: sums by every primitive have the right bits over each transport; the rows say what was
# asked for; costs are written as a table. Times are not judged.
. "$(dirname "$0")/program.sh"
export TMPDIR=$work

rows() {
	python3 - "$@" <<'P' || failed "rows: $*"
import json, sys
n, most, transport, kinds = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], set(sys.argv[4].split())
rows = [json.loads(line) for line in open("out")]
assert {r["primitive"] for r in rows} == kinds, kinds ^ {r["primitive"] for r in rows}
sizes = sorted({r["bytes"] for r in rows})
assert sizes[0] == min(1024, most) and sizes[-1] == most, sizes
assert all(b == 4 * a for a, b in zip(sizes, sizes[1:-1])), sizes
for r in rows:
    assert r["correct"] is True and r["workers"] == n and r["transport"] == transport, r
    assert r["canonical"] == (r["primitive"] not in ("ring", "tree")), r
    assert r["time_ms"] > 0 and abs(r["bytes"] / r["time_ms"] / 1e6 / r["algbw_GBps"] - 1) < 1e-6, r
    assert abs(r["busbw_GBps"] / r["algbw_GBps"] - 2 * (n - 1) / n) < 1e-6, r
for size in sizes:
    assert not any(r["best"] or r["chosen"] for r in rows if not r["canonical"]), rows
    of = [r for r in rows if r["bytes"] == size and r["canonical"]]
    if of:
        best, chosen = [r for r in of if r["best"]], [r for r in of if r["chosen"]]
        assert len(best) == len(chosen) == 1, of
        assert best[0]["time_ms"] == min(r["time_ms"] for r in of), of
        assert chosen[0]["predicted_ms"] == min(r["predicted_ms"] for r in of), of
P
}

most="direct owner halving-doubling recursive-doubling ring tree"
expect 0 heddle bench comm --workers 2 --bytes 1500000 --repeat 1 --json
rows 2 1500000 shm "$most"
expect 0 heddle bench comm --workers 3 --bytes 4096 --repeat 2 --transport tcp --json
rows 3 4096 tcp "$most"
expect 0 heddle bench comm --workers 4 --bytes 40000 --repeat 1 --transport tls --json
rows 4 40000 tls "$most hierarchical"
expect 0 heddle bench comm --workers 5 --bytes 8 --repeat 1 --transport unix --json
rows 5 8 unix "$most"
expect 0 heddle bench comm --workers 3 --bytes 1200000 --repeat 1 --primitive ring --json
rows 3 1200000 shm ring
passed "every primitive has the right bits, and its rows say what was asked for"

expect 0 heddle bench comm --workers 2 --bytes 1024 --repeat 1 --output table
says 'every bit as added alone'
says 'alpha '
head -n 1 table | grep -qx 'heddle-collectives 1' || failed "no table"
[ "$(grep -c '^link ' table)" = 2 ] || failed "not two links"
[ -z "$(ls -d heddle-* 2>/dev/null)" ] || failed "a folder is left behind"
passed "costs are written"

# what is not summed in time has no row
expect 0 heddle bench comm --workers 2 --bytes 1024 --repeat 900 --seconds 1 --json
[ "$(wc -l <out)" -le 6 ] || failed "more rows than cases"
passed "the bench ends when its time is over"

expect 2 heddle bench comm --workers 1
says '2 to 16'
expect 2 heddle bench comm --workers 17
expect 2 heddle bench comm --bytes 6
says 'a multiple of 4'
expect 2 heddle bench comm --bytes 1000000000
says '268435456'
expect 2 heddle bench comm --repeat 1001
expect 2 heddle bench comm --primitive rings
says 'hierarchical'
expect 2 heddle bench comm --workers 3 --primitive hierarchical
says 'equal nodes of 2, 4, 8'
HEDDLE_BENCH_MEMBER=x expect 2 heddle bench comm
says 'unset it'
passed "what cannot be summed is refused"
