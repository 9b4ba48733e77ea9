#!/bin/bash
# heddle demo: the job it would run is a job; the story itself takes a minute and runs where HEDDLE_SLOW is
# set.
. "$(dirname "$0")/program.sh"
expect 0 heddle demo --show
cp out demo.yaml
expect 0 heddle config check demo.yaml
expect 2 heddle demo elastik
says 'there is no demo "elastik"'
expect 2 heddle demo --devices 0
passed "--show prints a job file that is good; unknown demos are refused"
[ -n "${HEDDLE_SLOW:-}" ] || { echo "skip: the demo itself (set HEDDLE_SLOW=1)"; exit 0; }
expect 0 heddle demo --json -q
says '"identical":true'
passed "demo train"
expect 0 heddle eval runs/demo-train-2
says 'accuracy'
expect 0 heddle resume runs/demo-train -q
expect 0 heddle ckpt diff runs/demo-train runs/demo-train-2
passed "the demo's runs are runs like any other: evaluated, resumed, compared"
