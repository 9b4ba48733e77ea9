#!/bin/bash
# heddle sim: seeds, the same run for the same seed, what is shown, what is refused.
. "$(dirname "$0")/program.sh"

expect 0 heddle sim --seed 7 --seeds 50
says '50 seeds, 0 violated'
expect 0 heddle sim --seed 7 --explain
says 'coordinator starts'
cp out one.txt
expect 0 heddle sim --seed 7 --explain
cmp -s out one.txt || failed "one seed, two runs"
expect 0 heddle sim --seed 8 --explain
cmp -s out one.txt && failed "two seeds, one run"
expect 0 heddle sim --seed 7 --seeds 3 --json
says '"seed":9,"ok":true'
passed "seeds replay"

expect 2 heddle sim --seed x
says '--seed x'
expect 2 heddle sim 7
passed "refusals"
