#!/bin/bash
# heddle run of a graph in intervals whose dense work goes to functions: the bits of the run without them,
# step by step, whatever dies, and a bill that is the sum of the lines REPORT. Nothing is said about time.
. "$(dirname "$0")/program.sh"
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_REGION

# eight rings of ten vertices with few edges between them; a ring is a class
awk 'BEGIN {
	for (i = 0; i < 80; i++) {
		r = int(i / 10) * 10; print i, r + (i + 1) % 10; print i, r + (i + 3) % 10
	}
	for (i = 0; i < 80; i += 10) print i, (i + 17) % 80 }' >edges.txt
awk 'BEGIN { for (i = 0; i < 80; i++) print int(i / 10), i ":1" }' >features.svm
awk 'BEGIN { printf "train"; for (i = 0; i < 80; i += 5) printf " %d", i; printf "\nval"
	for (i = 1; i < 80; i += 5) printf " %d", i; printf "\ntest"
	for (i = 2; i < 80; i += 5) printf " %d", i; print "" }' >split.txt
expect 0 heddle data prepare-graph --edges edges.txt --features features.svm --split split.txt -o g.graph -q
cat >gcn.yaml <<END
job:   {name: gcn, seed: 3, steps: 40, kernels: portable}
model: {use: "builtin:gcn", args: {input: 80, classes: 8, slots: 6, hidden: 16, dropout: 0.5}}
data:  {kind: graph, path: g.graph, order: sequential}
batch: {global: 80, virtual_nodes: 1}
optim:
  {kind: adam, lr: 0.05, clip: 0, schedule: {kind: constant, warmup: 0}}
eval:  {every: 0, metric: accuracy}
trace: {digest: 1}
END
expect 2 heddle run gcn.yaml --out no -s batch.virtual_nodes=4 -s batch.global=400
rows=$(sed -n 's/.*set batch.global to \([0-9]*\),.*/\1/p' out err)
train() {      # OUT OPTIONS...
	heddle run gcn.yaml --out "$1" -s batch.virtual_nodes=4 -s batch.global="$rows" --devices 1 -q \
		"${@:2}"
}
digests() { sed -n 's/.*"digest":"\([0-9a-f]*\)".*/\1/p' "$1/metrics.ndjson"; }
# the last word on functions in the events of a run
bill() { grep '"kind":"functions"' "$1/events.ndjson" | tail -1; }
of_bill() { bill "$1" | sed -n "s/.*[ ;]\([0-9][0-9]*\) $2.*/\1/p"; }
equal() {      # OUT WHAT
	same "$(digests "$1")" "$(digests none)" "digests of every step, $2"
}
expect 0 train none
same "$(digests none | wc -l)" 40 "digests of a run without functions"

expect 0 train pool -s functions.kind=pool -s functions.size=2
equal pool "with a pool"
[ "$(of_bill pool 'tasks by functions')" -gt 0 ] || failed "the pool did no task: $(bill pool)"
# 4 virtual nodes in 40 steps: a multiple of 160
n=$(($(of_bill pool 'tasks by functions') + $(of_bill pool 'here')))
[ $((n % 160)) -eq 0 ] && [ "$n" -gt 0 ] || failed "$n tasks are no number of stretches in 40 steps of 4"
expect 0 train zero -s functions.kind=pool -s functions.size=0
equal zero "with no function at once"
same "$(of_bill zero 'tasks by functions')" 0 "tasks on no function"
same "$(of_bill zero 'here')" "$n" "each stretch of a virtual node is a task once"
expect 0 heddle status pool --json
json_ok
same "$(number functions_nano_usd)" "$(of_bill pool nano-dollars)" "what a pool cost, by status"
expect 0 heddle status pool
says "functions $(of_bill pool 'tasks by functions') tasks by functions"
passed "a pool gives the bits of the run alone"

# a virtual node ahead of others gives out the weights that it began its step with
late() { train "$1" -s job.steps=12 -s batch.staleness=1 -s batch.mode="$2" "${@:3}"; }
expect 0 late ahead bounded --workers 2 -s functions.kind=pool -s functions.size=2
[ "$(of_bill ahead 'tasks by functions')" -gt 0 ] || failed "no task was done ahead: $(bill ahead)"
expect 0 late again replay -s batch.replay=ahead
same "$(digests again)" "$(digests ahead)" "digests of every step, replayed without functions"
passed "tasks of virtual nodes ahead of others have the bits of a replay without functions"

# Services that are none, and a pool that is too dear, each of a run that goes on until it was said. `hang`
# accepts and is silent, `garbage` answers what is no answer, `half` closes in the middle of one, `busy` has
# no slot for ever, `cert` signs for itself.
cat >bad.py <<'END'
import os, socket, ssl, sys, threading
says = {"garbage": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n<\xff!html>\n",
        "half": b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{\"ok\"",
        "busy": b"HTTP/1.1 503 Busy\r\nContent-Length: 5\r\n\r\nfull\n"}
def serve(listener, name):
    kept = []
    while True:
        sock = listener.accept()[0]
        kept.append(sock)
        if name == "cert":
            try:
                context.wrap_socket(kept.pop(), server_side=True).close()
            except OSError:
                pass
        elif name in says:
            sock.recv(8192)
            sock.sendall(says[name])
            kept.pop().close()
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
if os.path.exists("s.pem"):
    context.load_cert_chain("s.pem", "s.key")
at = {name: socket.create_server(("127.0.0.1", 0), backlog=64) for name in ["cert", "hang", *says]}
for name, listener in at.items():
    threading.Thread(target=serve, args=(listener, name)).start()
    with open(name + ".tmp", "w") as f:
        f.write("127.0.0.1:%d" % listener.getsockname()[1])
    os.rename(name + ".tmp", name + ".at")
END
long() {       # OUT OPTIONS...: in the background
	"$HEDDLE_BIN" run gcn.yaml --out "$1" -s batch.virtual_nodes=4 -s batch.global="$rows" -q \
		--devices 1 -s job.steps=1000000 "${@:2}" >"$1.out" 2>&1 &
	eval "${1}_run=$!"
}
said() { grep -qs "\"kind\":\"$2\".*$3" "$1/events.ndjson"; }
runs=dear
long dear -s functions.kind=pool -s functions.max=3 -s functions.budget_per_hour=1e-9
if command -v python3 >/dev/null; then
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=self \
		-addext subjectAltName=IP:127.0.0.1 -keyout s.key -out s.pem >/dev/null 2>&1
	python3 bad.py 2>bad.err &
	bad=$!
	runs="hang garbage half busy dear"
	await test -e busy.at
	for out in hang garbage half busy; do
		long $out -s functions.kind=http -s functions.endpoint="http://$(cat $out.at)" \
			-s functions.size=2 -s functions.deadline=1s
	done
	if [ -s s.pem ] && heddle version | grep -q 'curl=yes'; then
		runs="$runs cert"
		long cert -s functions.kind=http -s functions.endpoint="https://$(cat cert.at)" \
			-s functions.listen=127.0.0.1:0
		await said cert warning 'calls in a row failed.*certificate'
	fi
	await said hang warning 'no answer by the deadline'
	await said garbage warning 'it answers what no function worker says'
	await said half warning 'ended without an answer'
	await said busy warning 'no call has ended well.*status 503: full'
fi
await said dear functions_size '0 at once (it was 3), by budget:'
for out in $runs; do
	reach "$out" 40
	pid=${out}_run
	kill "${!pid}"
	wait "${!pid}"
	same $? 75 "exit of the run $out, which was asked to stop"
	same "$(digests "$out" | head -40)" "$(digests none)" "digests of every step, of the run $out"
	[ $out = dear ] || same "$(of_bill "$out" 'tasks by functions')" 0 "tasks on a service that is none"
	[ "$(grep -c '"kind":"warning"' "$out/events.ndjson")" -le 2 ] || failed "many warnings: $out"
done
[ -z "${bad:-}" ] || kill "$bad"
passed "services that are none are said and done without, and a budget bounds the pool"

expect 0 train auto -s functions.kind=pool -s functions.max=3
equal auto "whose pool has any size"
# 40 steps are too few for a size that is said: what it settles at is asserted in src/functions/tuner_test.c
grep -q ', 3 at once to begin with,' auto/events.ndjson || failed "no size is looked for"
passed "so does one whose size is looked for"

# all processes of the pool are killed, again and again
"$HEDDLE_BIN" run gcn.yaml --out killed -s batch.virtual_nodes=4 -s batch.global="$rows" --devices 1 -q \
	-s functions.kind=pool -s functions.size=2 &
run=$!
while kill -0 $run 2>/dev/null; do kill -KILL $(pgrep -P $run) 2>/dev/null; done
wait $run
same $? 0 "exit of a run whose functions are killed"
equal killed "of a pool that is killed whole"
same $(($(of_bill killed 'tasks by functions') + $(of_bill killed 'here'))) "$n" \
	"each task counts once, of a pool that is killed"
passed "so does one that is killed whole"

"$HEDDLE_BIN" worker --function=http --listen 127.0.0.1:0 --slots 4 >http-at 2>http-err &
front=$!
await grep -q http http-at
expect 0 train http -s functions.kind=http -s functions.endpoint="$(cat http-at)" -s functions.size=2
equal http "over HTTP"
[ "$(of_bill http 'tasks by functions')" -gt 0 ] || failed "no task over HTTP: $(bill http)"
kill "$front"
wait "$front" || true
passed "workers behind an HTTP front end give them, too"

"$HEDDLE_BIN" chaos lambda --slots 3 --kill 0.05 --straggle 0.05:10 --drop-response 0.02 --duplicate 0.02 \
	--seed 3 -o lines >lambda-at 2>emulator &
emulator=$!
await grep -q http lambda-at
expect 0 train lambda -s functions.kind=lambda -s functions.endpoint="$(cat lambda-at)" \
	-s functions.size=3 -s functions.reports=lines
equal lambda "by the emulator, whose calls fail"
same $(($(of_bill lambda 'tasks by functions') + $(of_bill lambda 'here'))) "$n" "each task counts once"
[ $((20 * $(of_bill lambda 'duplicates'))) -le "$(of_bill lambda 'attempts')" ] ||
	failed "more than 5 % duplicates"
# the second run of an event that came twice may end after the run: its line is the last
set -- $(head -n "$(of_bill lambda 'calls')" lines | sed 's/.*Billed Duration: \([0-9]*\) ms.*/\1/')
same $# "$(of_bill lambda 'calls')" "each call has a line REPORT"
[ "$(wc -l <lines)" -le $(($# + 3)) ] || failed "lines REPORT that are in no bill"
sum=0
for ms; do sum=$((sum + ms)); done
# 0.0000166667 dollars a GB-s, 0.0000002 a call
same "$(((sum * 1769 * 166667 + $# * 2000 * 1024000) / 10240000))" \
	"$(of_bill lambda 'nano-dollars')" "the bill is the sum of the lines"
# functions call each worker at a port of its own, though the job names one
expect 0 train lambda2 --workers 2 -s functions.kind=lambda -s functions.endpoint="$(cat lambda-at)" \
	-s functions.size=1 -s functions.listen=127.0.0.1:$((20000 + $$ % 10000))
equal lambda2 "of two workers"
same "$(sed -n 's/.*they call \(tcp:[0-9.:]*\).*/\1/p' lambda2/events.ndjson | sort -u | wc -l)" 2 \
	"ports that functions call"
same "$(ls lambda2/functions | wc -l)" 2 "each worker says what its functions cost"
expect 0 heddle status lambda2 --json
json_ok
[ "$(number functions_nano_usd)" -gt 0 ] || failed "two workers' functions cost nothing"
set -- $(sed -n 's/.*"kind":"functions".* \([0-9]*\) nano-dollars.*/\1/p' lambda2/events.ndjson)
same $# 2 "events that say a bill, one of each worker"
same $(($1 + $2)) "$(number functions_nano_usd)" "what both say that their functions cost"
grep -q "<dt>functions</dt>.* $(printf '0.%09d' $(($1 + $2))) USD (emulated)" lambda2/report.html ||
	failed "the report has no bill of both"
# a worker of another machine has no folder, and its bill is in the sum all the same
heddle serve --new-key key >out
long far -s functions.kind=pool -s functions.size=1 --workers 1 --listen 127.0.0.1:0 --key key
await test -s far/listen
"$HEDDLE_BIN" worker --join "$(cat far/listen)" --key key --devices 1 -q >guest.out 2>&1 &
guest=$!
await eval 'ls far/functions/far-* >/dev/null 2>&1'
expect 0 heddle stop far
wait $far_run || true
wait $guest || true
set -- $(sed -n 's/.*"kind":"functions".* \([0-9]*\) nano-dollars.*/\1/p' far/events.ndjson)
same $# 2 "events that say a bill, one of a worker there"
expect 0 heddle status far --json
json_ok
same "$(number functions_nano_usd)" $(($1 + $2)) "what both say that their functions cost, one of them there"
grep -q "<dt>functions</dt>.* $(printf '0.%09d' $(($1 + $2))) USD (emulated)" far/report.html ||
	failed "the report has no bill of the worker there"
# it ends in the middle
"$HEDDLE_BIN" run gcn.yaml --out middle -s batch.virtual_nodes=4 -s batch.global="$rows" --devices 1 -q \
	-s functions.kind=lambda -s functions.endpoint="$(cat lambda-at)" -s functions.size=2 &
run=$!
await grep -qs '"step":5' middle/metrics.ndjson
kill -KILL "$emulator"
wait $run
same $? 0 "exit of a run whose service ends"
equal middle "of a service that ends in the middle"
passed "so does the emulator, with one process and with two, to its end, and the bill is right"

# it is gone, and that is said
expect 0 train gone -s functions.kind=lambda -s functions.endpoint="$(cat lambda-at)" -s functions.size=2
equal gone "of a service that is gone"
same "$(of_bill gone 'nano-dollars')" 0 "what a service costs that did nothing"
grep -q 'calls in a row failed, so all is run here' gone/events.ndjson ||
	failed "no word of the closed circuit"
passed "a service that is gone is said, and done without"

expect 2 train no -s functions.kind=lambda
says 'need an endpoint'
expect 2 train no -s functions.kind=pool -s job.kernels=library
says 'set job.kernels to portable'
expect 2 heddle run gcn.yaml --out no --devices 1 -s functions.kind=pool
says 'batch.virtual_nodes'
expect 2 train no -s functions.kind=pool --devices 2
says 'one device'
expect 2 train no -s functions.kind=pool -s functions.min=4 -s functions.max=3
says 'no size of a pool lies between them'
expect 2 train no -s functions.kind=pool -s functions.endpoint=http://127.0.0.1:1
says 'functions.endpoint has no meaning with functions.kind pool'
expect 2 train no -s functions.kind=cloud
passed "what cannot be is refused"
