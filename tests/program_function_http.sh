#!/bin/bash
# heddle worker --function=http: events by POST, health, one task at a time, SIGTERM drains; tasks that it
# computes have the bits of one process.
. "$(dirname "$0")/program.sh"
command -v python3 >/dev/null || { echo "skip: no python3 to send requests"; exit 77; }
expect 2 heddle worker --function=http --slots 65
"$HEDDLE_BIN" worker --function=http --listen 127.0.0.1:0 > where 2> log &
worker=$!
await grep -qs http where
expect 0 heddle bench functions --function=http --endpoint "$(cat where)" --slots 3 --count 20 --json
json_ok
same "$(number equal)" 20 "tasks with the bits of this process"
same "$(($(number accepted) + $(number here)))" 30 "each task is committed once"
same "$(number failures)" 0 "refused calls, of three at once for one worker, that count as failed"
[ "$(number accepted)" -gt 0 ] || failed "the front end did no task"
expect 11 heddle bench functions --function=http --endpoint "$(cat where)/other" --count 2 --json
grep -q 'status 404' err || failed "no word of why no call ends well: $(cat err)"
kill "$worker"
wait "$worker"
same $? 0 "exit of a worker that has nothing to do"
expect 2 heddle bench functions --function=http --endpoint http://127.0.0.1:1 --listen 0.0.0.0:0 --count 1
says '0.0.0.0:0 is every address'
expect 11 heddle bench functions --function=http --endpoint http://127.0.0.1:1 --count 1
grep -q 'without an answer' err && failed "a refused connection ended without an answer: $(cat err)"
says 'round trip none: no call came through'
passed "tasks over the HTTP front end"

cat > drain.py <<'END'
# The owner of the task is this program: it accepts, says nothing, and so decides how long the task runs.
import atexit, json, os, signal, socket, subprocess, sys, threading, time, urllib.error, urllib.request
with open("log", "w") as log:
    worker = subprocess.Popen([os.environ["HEDDLE_BIN"], "worker", "--function=http", "--listen",
                               "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=log, text=True)
atexit.register(worker.kill)       # also where an assertion fails
url = worker.stdout.readline().strip()
def ask(path, body=None):
    try:
        with urllib.request.urlopen(url + path, body) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
owner = socket.create_server(("127.0.0.1", 0))
event = json.dumps({"v": 1, "task": "0" * 32, "attempt": 1, "host": "127.0.0.1",
                    "port": owner.getsockname()[1], "token": "1" * 64, "tls": False,
                    "deadline_ms": int(time.time() * 1000) + 3600000, "kernel_set": "portable"}).encode()
assert ask("/_/health")[0] == ask("/_/ready")[0] == 200
assert ask("/other", b"{}")[0] == ask("/")[0] == 404
assert ask("/", b"x" * 2000)[0] == 413
status, answer = ask("/", b"{}")
assert status == 200 and json.loads(answer)["error"] == "event", answer
got = []
first = threading.Thread(target=lambda: got.append(ask("/", event)), daemon=True)
first.start()
task, _ = owner.accept()
assert ask("/", event)[0] == 429 and ask("/_/health")[0] == 200       # while the task runs
worker.send_signal(signal.SIGTERM)
while ask("/_/health")[0] == 200:
    pass
assert ask("/_/ready")[0] == 503 and ask("/", event)[0] == 503 and worker.poll() is None
task.close()
first.join()
assert got[0][0] == 200 and json.loads(got[0][1])["error"] == "owner", got
assert worker.wait() == 0
END
python3 drain.py || failed "the front end does not do as it should: $(cat log)"
passed "health, 404, 413, 429, and a drain that finishes its task"

static=$(dirname "$(readlink -f "$HEDDLE_BIN")")/heddle-function
[ -e "$static" ] || { echo "skip: this build has no heddle-function (static libraries)"; exit 77; }
# a port that was free a moment ago; where another program took it the worker says so and ends: the next one
start() {
	: > log
	port=$(python3 -c 'import socket; print(socket.create_server(("127.0.0.1", 0)).getsockname()[1])')
	env -i PORT="$port" "$static" 2> log &
	worker=$!
}
answers() {
	[ ! -s log ] || start
	(: < "/dev/tcp/127.0.0.1/$port") 2>/dev/null && [ ! -s log ]
}
start
await answers
expect 0 heddle bench functions --function=http --endpoint "http://127.0.0.1:$port" --slots 1 --count 4 --json
same "$(number equal)" 4 "tasks with the bits of this process, by the static program"
[ "$(number accepted)" -gt 0 ] || failed "the static program did no task"
kill "$worker"
wait "$worker"
same $? 0 "exit of the static program"
passed "the static program serves \$PORT in an empty environment"
