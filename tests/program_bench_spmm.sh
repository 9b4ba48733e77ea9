#!/bin/bash
# heddle bench spmm: each width is there, by every way, with equal bits; times are not judged.
. "$(dirname "$0")/program.sh"
expect 0 heddle bench spmm tiny --repeat 1 --json
json_ok
same "$(grep -o '"width":[0-9]*' out | sed 's/.*://' | tr '\n' ' ')" "1 4 16 64 100 128 256 602 " "widths"
for name in plain_ms own_ms own_wall_ms bf16_ms devices_ms own_over_plain bf16_over_plain devices_over_own; do
	same "$(grep -o "\"$name\":" out | wc -l)" 8 "$name"
done
expect 0 heddle bench spmm tiny --repeat 1
says '2000 vertices'
expect 2 heddle bench spmm huge
says 'small, medium or large'
expect 2 heddle bench spmm tiny --repeat 0
passed "bench spmm times every width and compares the bits"
