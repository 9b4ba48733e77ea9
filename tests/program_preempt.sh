#!/bin/bash
# Urgent bytes behind others: `heddle bench preempt` over every row of transports, a relay, two networks.
. "$(dirname "$0")/program.sh"

# lines, transport: every case once, its keys, every byte as sent, no inversion
is_whole()
{
	python3 - "$1" "$2" <<'P' || failed "bench preempt, $2: see above"
import json, sys
rows = [r for r in map(json.loads, open(sys.argv[1])) if r["transport"] == sys.argv[2]]
cases = [r["case"] for r in rows]
assert cases == ["planned", "answer", "order", "state", "gaps"], cases
for r in rows:
    steps = r["case"] in ("state", "gaps")
    keys = ["step_ms_alone", "step_ms", "step_slowdown", "bulk_share"] if steps else [
        "wire_ms", "urgent_ms", "urgent_over_wire_time", "bulk_ms_alone", "bulk_ms", "bulk_slowdown"]
    for key in keys + ["link", "rate_mbit", "delay_ms", "bulk_bytes", "urgent_bytes", "preempted", "aged"]:
        assert key in r, (r["case"], key)
    assert r["inversions"] == 0 and r["correct"] is True, r
    assert steps or (r["urgent_ms"] > 0 and r["wire_ms"] > 0), r
    assert r["case"] != "state" or r["bulk_share"] > 0, r
P
}

mkdir t && export TMPDIR=$PWD/t
expect 0 heddle bench preempt --bytes 400000 --repeat 2 --json
for transport in tcp tls shm; do is_whole out $transport; done
same "$(grep -c . out)" 15 "rows"
same "$(grep -c '"link":"none"' out)" 15 "rows without a link"
expect 0 heddle bench preempt --bytes 400000 --repeat 1 --transport unix --json
is_whole out unix
passed "all transports, as fast as they go"

expect 0 heddle bench preempt --bytes 400000 --repeat 1 --transport tcp --rate 1000 --delay 1 --json
is_whole out tcp
same "$(grep -c '"link":"relay","rate_mbit":1000,"delay_ms":1,' out)" 5 "rows over a relay"
expect 0 heddle bench preempt --bytes 400000 --repeat 1 --transport tls --rate 1000 --json
is_whole out tls
same "$(grep -c '"link":"\(netns\|relay\)","rate_mbit":1000,"delay_ms":0,' out)" 5 "rows over a link"
expect 0 heddle bench preempt --bytes 400000 --repeat 1 --transport shm --rate 1000
says ' of its wire time'
says '; 0 inversions'
says 'beside an answer'
passed "links with a rate"

expect 2 heddle bench preempt --rate 0
says '1 and 100000'
expect 2 heddle bench preempt --rate 10 --delay 1001
expect 2 heddle bench preempt --delay 1
says 'add --rate'
expect 2 heddle bench preempt --bytes 65535
expect 2 heddle bench preempt --repeat 0
expect 2 heddle bench preempt --rate 10 --delay 1 --link netns
says 'take relay'
expect 2 heddle bench preempt --link wifi
same "$(find t -type d | wc -l)" 1 "folders, after all"
passed "what cannot be measured is refused"
