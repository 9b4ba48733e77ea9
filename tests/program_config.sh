#!/bin/bash
# heddle config check, show, schema; where values come from.
. "$(dirname "$0")/program.sh"
write_jobs 6
expect 0 heddle config check mlp.yaml
says 'mlp.yaml: ok'
expect 0 heddle config check mlp.yaml --json
hash=$(number job_hash)
[ ${#hash} -eq 32 ] || failed "no job hash"
expect 0 heddle config check mlp.yaml --json -s log.level=error
same "$(number job_hash)" "$hash" "a key that does not fix the result enters the hash"
expect 0 heddle config check mlp.yaml --json -s job.seed=4
[ "$(number job_hash)" != "$hash" ] || failed "the seed does not enter the hash"
passed "check prints the job hash, which result keys alone change"

origin() { sed -n "s/^$1 *R* *\([a-z-]*\).* \([^ ]*\)\$/\1 \2/p" out; }
expect 0 heddle config show mlp.yaml
same "$(origin optim.lr)" "file 0.01" "from the file"
same "$(origin log.level)" "default info" "a default"
HEDDLE_OPTIM_LR=0.02 expect 0 heddle config show mlp.yaml
same "$(origin optim.lr)" "environment 0.02" "the environment is above the file"
HEDDLE_OPTIM_SCHEDULE_KIND=linear expect 0 heddle config show mlp.yaml
same "$(origin optim.schedule.kind)" "environment linear" "a key with a dot"
HEDDLE_OPTIM_LRR=0.02 HEDDLE_SHARED=/tmp HEDDLE_OPTIM_EPS=1e-7 expect 0 heddle config show mlp.yaml
says 'HEDDLE_OPTIM_LRR is no key of a job and changes nothing; did you mean HEDDLE_OPTIM_LR?'
same "$(grep -c HEDDLE_ err)" 1 "warnings of the environment"
HEDDLE_OPTIM_LR=0.02 expect 0 heddle config show mlp.yaml -s optim.lr=0.03
same "$(origin optim.lr)" "-s 0.03" "-s is above the environment"
expect 0 heddle config show mlp.yaml --json
says '"origin":"file"'
passed "default < file < environment < -s, and each value says so"

expect 0 heddle config schema
says '"additionalProperties":false'
passed "schema"

sed 's/heads: 2/heads: 3/' gpt.yaml >bad.yaml
expect 2 heddle config check bad.yaml
says 'bad.yaml:2:'
says 'heads'
expect 2 heddle run bad.yaml --dry-run
passed "check refuses a model that cannot be built, where it is written"
