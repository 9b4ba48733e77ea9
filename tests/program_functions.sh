#!/bin/bash
# heddle bench functions: tasks on processes that die, straggle and lose answers have the bits of one process,
# count once each, and cost what the log says. Nothing is said about time.
. "$(dirname "$0")/program.sh"
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_REGION
expect 0 heddle bench functions --count 60 --slots 3 --kill 0.05 --straggle 0.05:10 --drop-response 0.03 \
	--duplicate 0.03 --seed 3 -o reports --json
json_ok
same "$(number tasks)" 60 "tasks"
same "$(number equal)" 60 "tasks with the bits of this process"
[ "$(number failures)" -gt 0 ] || failed "no call failed: the draws of seed 3 have some"
[ "$(number refused)" -gt 0 ] || failed "no event came twice: the draws of seed 3 have some"
# 10 single tasks follow the 60
same "$(($(number accepted) + $(number here)))" 70 "each task is committed once"
[ "$(number accepted)" -gt "$(number here)" ] || failed "functions did not do most of the tasks"
[ $((20 * $(number duplicates))) -le "$(number attempts)" ] || failed "more than 5 % duplicates"
set -- $(sed 's/.*Billed Duration: \([0-9]*\) ms.*Memory Size: 1769 MB.*/\1/' reports)
same $# "$(number calls)" "each call has a line REPORT"
sum=0
for ms; do sum=$((sum + ms)); done
# 0.0000166667 dollars a GB-s, 0.0000002 a call
nano=$(((sum * 1769 * 166667 + $# * 2000 * 1024000) / 10240000))
same "$nano" "$(number nano_usd)" "the ledger is the sum of the lines"
passed "60 tasks on processes that fail, and their bill"

# the same by the Invoke API of the emulator, workers over TLS
"$HEDDLE_BIN" chaos lambda --slots 3 --kill 0.05 --straggle 0.05:10 --drop-response 0.03 --duplicate 0.03 \
	--seed 3 --price 2025 -o lines > where 2> emulator &
emulator=$!
await grep -q http where
expect 0 heddle bench functions --function=lambda --endpoint "$(cat where)" --slots 3 --count 20 \
	--reports lines --json
json_ok
same "$(number equal)" 20 "tasks with the bits of this process, by the emulator"
same "$(($(number accepted) + $(number here)))" 30 "each task is committed once, by the emulator"
[ "$(number accepted)" -gt "$(number here)" ] || failed "few tasks by the emulator's functions"
# what the log had before is of other calls; a session token may be long
before=$(grep -c REPORT lines)
AWS_SESSION_TOKEN=$(head -c 2000 /dev/zero | tr '\0' t) expect 0 heddle bench functions --function=lambda \
	--endpoint "$(cat where)" --count 4 --reports lines --json
json_ok
[ "$(number accepted)" -gt "$(number here)" ] || failed "few tasks with a long session token"
[ "$(number calls)" -le $(($(grep -c REPORT lines) - before)) ] || failed "calls of others are in the ledger"
AWS_SECRET_ACCESS_KEY=other expect 11 heddle bench functions --function=lambda --endpoint "$(cat where)" \
	--count 4 --json
grep -q 'status 403, InvalidSignatureException' err || failed "no word of why no call ends well: $(cat err)"
same "$(number calls)" 0 "a call that is refused costs nothing"
same "$(number here)" 14 "whose signature is wrong runs its tasks itself"
kill "$emulator"
wait "$emulator"
same $? 0 "exit of chaos lambda"
set -- $(sed 's/.*Billed Duration: \([0-9]*\) ms.*/\1/' lines)
sum=0
for ms; do sum=$((sum + ms)); done
same "$(tail -1 where)" "$# calls, $(((sum * 1769 * 166667 + $# * 2000 * 1024000) / 10240000)) nano-dollars \
(prices of 2025-08-01, emulated)" "what chaos lambda says that its calls cost"
expect 2 heddle chaos lambda --price 2025
expect 2 heddle chaos lambda --price 2025 -o /dev/null
says 'give a regular file'
"$HEDDLE_BIN" chaos lambda --json --price 2025 -o no-lines >out 2>err &
emulator=$!
await grep -q '"address":"http://127' out
kill "$emulator"
wait "$emulator"
same $? 0 "exit of chaos lambda --json"
grep -q '"nano_usd":0' out || failed "no sum as JSON: $(cat out)"
! grep -qv '^{.*}$' out || failed "no JSON: $(cat out)"

passed "tasks through the emulator, signed and not"

# a bench that is asked to stop removes its folder; that of one that was killed goes with the next bench
"$HEDDLE_BIN" bench functions --count 1000 --straggle 1:1000 > /dev/null 2>&1 &
killed=$!
await test -S /tmp/heddle-functions-$killed/owner
kill -KILL "$killed"
wait "$killed"
"$HEDDLE_BIN" bench functions --count 1000 --straggle 1:1000 > /dev/null 2> stopped &
bench=$!
await test -S /tmp/heddle-functions-$bench/owner
kill "$bench"
status=0
wait "$bench" || status=$?
same $status 75 "exit of a bench that was asked to stop"
[ ! -e /tmp/heddle-functions-$killed ] || failed "the folder of a killed bench is left"
[ ! -e /tmp/heddle-functions-$bench ] || failed "the bench left its folder"
# pids end at 4194304. A folder that others may enter is none of ours; one of our own pid is a dead process's
mkdir -m 755 /tmp/heddle-functions-$((5000000 + $$))
mkdir -m 700 /tmp/heddle-functions-$((15000000 + $$))
bash -c 'mkdir -m 700 /tmp/heddle-functions-$$ && touch /tmp/heddle-functions-$$/x && echo $$ > own &&
	exec "$HEDDLE_BIN" bench functions --count 1 > out 2> err'
same $? 0 "exit of a bench whose folder was there: $(cat err)"
rmdir /tmp/heddle-functions-$((5000000 + $$)) || failed "the bench removed a folder that others may enter"
[ ! -e /tmp/heddle-functions-$((15000000 + $$)) ] || failed "the bench left a folder of no process"
[ ! -e /tmp/heddle-functions-$(cat own) ] && [ ! -e /tmp/heddle-functions-$(cat own)-old ] ||
	failed "the bench left its folder"
passed "folders of benches that end"

# instances end with the emulator, those that stand still, too
"$HEDDLE_BIN" chaos lambda > other 2> /dev/null &
emulator=$!
await grep -q http other
expect 0 heddle bench functions --function=lambda --endpoint "$(cat other)" --slots 1 --count 1
instance=$(pgrep -P $emulator)
kill -STOP $instance
kill -KILL $emulator
ended() { ! grep -qs 'State:	[^XZ]' "/proc/$1/status"; }
await ended $instance
passed "instances end with the emulator"

# a task has 32768 bytes: rows, and what it gives back; the weights, 8192 more, stay at a warm worker
"$HEDDLE_BIN" chaos lambda --slots 1 --bandwidth 500KiB -o paced > paced-at 2> /dev/null &
emulator=$!
await grep -q http paced-at
expect 0 heddle bench functions --function=lambda --endpoint "$(cat paced-at)" --slots 1 --count 1
kill "$emulator"
wait "$emulator"
[ "$(sed 's/.*Billed Duration: \([0-9]*\) ms.*/\1/' paced | sort -n | tail -1)" -ge 64 ] ||
	failed "32 kB took less than 64 ms at 512 kB/s: $(cat paced)"
expect 2 heddle chaos lambda --bandwidth 10
says 'bytes a second, from 1000 to 100000000000, as 10MiB'
echo text > boot
expect 3 heddle chaos lambda --bootstrap boot
says 'boot is no executable'
passed "a bandwidth is kept, and a bootstrap that is none is refused"

expect 2 heddle chaos lambda --slots 65
expect 2 heddle chaos lambda --slots 4294967297
expect 2 heddle bench functions --kill 2
expect 2 heddle bench functions --slots 4294967297
expect 2 heddle bench functions --count 4294967297
expect 2 heddle bench functions --isa avx3
echo '{"date":"d","region":"r","functions":[]}' > none.json
expect 2 heddle bench functions --price none.json
expect 2 heddle worker --function=pool
