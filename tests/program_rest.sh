#!/bin/bash
# The scheduler's HTTP from outside: access, what its own schema makes of it, and that nothing else
# listens. The verbs that ask: program_jobs.sh; what the scheduler does: program_cluster.sh.
. "$(dirname "$0")/program.sh"
command -v python3 >/dev/null || { echo "skip: no python3 to ask with"; exit 77; }
write_jobs 5
begin()                 # ARGUMENTS of serve: in the background, until its socket is there
{
	rm -f d/heddle.sock
	"$HEDDLE_BIN" serve --dir d --pool fast:1,slow:1:0.5 --policy fifo --round 1 --drain "$@" \
		>serve.out 2>serve.err &
	daemon=$!
	await listens_or_ended && [ -S d/heddle.sock ] || failed "serve does not listen: $(cat serve.err)"
}
listens_or_ended() { [ -S d/heddle.sock ] || ! kill -0 $daemon 2>/dev/null; }
listeners() { python3 - "$1" <<'END'
import os, sys
folder = "/proc/%s/fd/" % sys.argv[1]
inodes = {os.readlink(folder + fd) for fd in os.listdir(folder) if os.path.exists(folder + fd)}
n = 0
for table in ("tcp", "tcp6", "udp", "udp6"):
    for line in list(open("/proc/net/" + table))[1:]:
        f = line.split()
        n += "socket:[%s]" % f[9] in inodes and (f[3] == "0A" or table.startswith("udp"))
print(n)
END
}

for where in 0.0.0.0:0 "[::]:0" 10.0.0.1:80 example.org:80 8080; do
	expect 2 heddle serve --dir d --pool fast:1 --http $where
	says 'ssh -L PORT:127.0.0.1:PORT HOST'
done
passed "no other machine is served, and the way round is named"

# Without a device in service no job runs: what would be is known beforehand. A job alone on a device of speed
# 1 takes a step a second.
cat >ask.py <<'END'
import http.client, json, socket
class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect("d/heddle.sock")
def ask(method, path, body=None):
    c = Unix("localhost")
    text, head = (None, {}) if body is None else (json.dumps(body), {"Content-Type": "application/json"})
    c.request(method, path, text, head)
    r = c.getresponse()
    return r.status, json.loads(r.read())
END
cat >whatif.py <<'END'
import sys
from ask import ask
if len(sys.argv) > 1:
    for device in sys.argv[1:]:
        assert ask("POST", "/v1/devices/" + device, {"usable": False})[0] == 200
    sys.exit()
def what(change, status=200):
    s, o = ask("POST", "/v1/whatif", change)
    assert s == status, (change, s, o)
    row = ("name", "share", "share_then", "left_s", "left_s_then")
    return o["error"] if s != 200 else [tuple(r[k] for k in row) for r in o["affected"]]
def same(change, rows):
    assert what(change) == rows, (change, what(change))
def known():
    return [ask("GET", "/v1/" + path)[1] for path in ("jobs", "events/past?limit=1000", "policy", "pools")]
before = known()
steps = before[0]["jobs"][0]["steps"]
one, two = ("one", 0, 1, -1, steps), ("two", 0, 1, -1, steps)
same({"add": {"fast": 1}}, [one])
same({"add": {"fast": 2}}, [one, two])
same({"add": {"fast": 1}, "without": "one"}, [two])
same({"add": {"slow": 1}, "without": 1}, [("two", 0, 1, -1, 2 * steps)])
same({"add": {"fast": 1}, "job": "two", "priority": 5, "policy": "priority"}, [two])
same({"add": {"fast": 1}, "job": "two", "scale": 2, "without": "one"}, [])
same({"policy": "sjf"}, [])
for change, status, says in (({}, 400, "what if what?"), ({"add": {"tpu": 1}}, 400, 'no type "tpu"'),
                             ({"job": 1}, 400, "priority, scale"),
                             ({"add": {"fast": -1}}, 400, "can be tried"), ({"scale": 2}, 400, "says which"),
                             ({"without": "none"}, 404, "none"),
                             ({"policy": "best"}, 400, "best"),
                             ({"policy": "gandiva"}, 400, "two jobs on a device")):
    assert says in what(change, status), (change, what(change, status))
assert known() == before, "a what-if changed something"
END
begin
expect 0 python3 whatif.py fast-0 slow-0
expect 0 heddle submit mlp.yaml --dir d --name one
expect 0 heddle submit mlp.yaml --dir d --name two
expect 0 python3 whatif.py
passed "what would be is answered, and nothing is changed by it"

# One key, one order: however it is written, and over a restart.
cat >order.py <<'END'
import os
from ask import ask
order = {"job": open("mlp.yaml").read(), "folder": os.getcwd(), "key": "k1", "scale": 1,
         "rates": {"fast": 2, "slow": 1}, "set": ["job.seed=3"]}
def submit(change={}):
    members = sorted({**order, **change}.items(), reverse=bool(change))
    return ask("POST", "/v1/jobs", {k: v for k, v in members if v is not None})
jobs = lambda: ask("GET", "/v1/jobs")[1]["jobs"]
status, first = submit()
assert status == 200, first
assert submit() == (200, first) and submit({"rates": {"slow": 1.0, "fast": 2.0}}) == (200, first)
before = len(jobs())
for change in ({"scale": 2}, {"rates": {"fast": 1, "slow": 2}}, {"rates": None}, {"set": ["job.seed=4"]},
               {"set": []}, {"name": "n"}, {"priority": 1}, {"user": "ann"}, {"folder": "/"},
               {"job": order["job"] + "\n# another\n"}):
    status, answer = submit(change)
    assert status == 409 and answer["exit"] == 2, (change, status, answer)
    assert "has another order" in answer["error"] and "job %d " % first["id"] in answer["error"], answer
assert len(jobs()) == before
status, other = submit({"key": "k2"})
assert status == 200 and other["id"] != first["id"], other
status, answer = submit({"key": "k3", "rates": {"Fast": 1}})
assert status == 400 and "did you mean fast?" in answer["error"], answer
END
expect 0 python3 order.py
kill $daemon
wait $daemon
begin
expect 0 python3 order.py
kill $daemon
wait $daemon
rm -rf d
passed "an order that is sent again is the same job, another order with its key is refused"

asked_why() { heddle explain other --dir d >why.out && grep -qF "$1" why.out; }
begin
[ "$(stat -c %a d)" = 700 ] || failed "others can enter the folder"
same "$(listeners $daemon)" 0 "sockets of the network without --http"
[ ! -e d/token ] || failed "a token without a port"
expect 0 heddle submit mlp.yaml --dir d
expect 0 heddle submit mlp.yaml --dir d --scale 2 --name other
says 'UNRUNNABLE: it needs 2 devices of one type, and none that it can use has more than 1: submit it for 1'
for verb in jobs status; do
	expect 0 heddle $verb --dir d
	says 'UNRUNNABLE: it needs 2 devices'
done
await asked_why 'other) is queued: UNRUNNABLE'
for seed in 1 2 3; do
	expect 0 python3 "$SOURCE_DIR/tests/rest_generate.py" d/heddle.sock $seed 150
	tail -n 1 out
done
kill -0 $daemon || failed "the scheduler died: $(cat serve.err)"
lines=$(wc -l <d/audit.ndjson)
expect 3 heddle cancel nosuch --dir d
same "$(wc -l <d/audit.ndjson)" $((lines + 1)) "lines of the audit log after one order"
kill $daemon
wait $daemon
passed "requests made up from the schema are answered by it; what it forbids is refused and changes nothing"

begin --http 127.0.0.1:0
same "$(listeners $daemon)" 1 "sockets of the network with --http"
[ "$(stat -c %a d/token)" = 600 ] || failed "others can read the token"
says_url=$(grep -o 'http://127.0.0.1:[0-9]*' serve.err | head -n 1)
[ -n "$says_url" ] || failed "the address is not printed: $(cat serve.err)"
expect 0 python3 - "$says_url" "$(cat d/token)" <<'END'
import http.client, json, sys
host, token = sys.argv[1][7:], sys.argv[2].strip()
def ask(target, **headers):
    c = http.client.HTTPConnection(host, timeout=20)
    c.request("GET", target, headers={k.replace("_", "-"): v for k, v in headers.items()})
    return c.getresponse()
assert ask("/v1/status").status == 401
wrong = token[:-1] + ("0" if token[-1] != "0" else "1")
assert ask("/v1/status", Authorization="Bearer " + wrong).status == 401
assert ask("/v1/status", Authorization="Bearer " + token).status == 200
assert ask("/v1/status", Authorization="Bearer " + token, Host="example.org").status == 421
assert ask("/v1/status", Authorization="Bearer " + token, Origin="http://example.org").status == 403
r = ask("/v1/events?after=0", Authorization="Bearer " + token)
lines = [r.readline().decode().rstrip("\n") for _ in range(4)]
assert all(line.startswith(word) for line, word in zip(lines, ("id: ", "event: ", "data: "))), lines
assert lines[3] == "", lines
assert json.loads(lines[2][6:])["number"] == int(lines[0][4:]), lines
END
kill $daemon
wait $daemon
passed "a port is served to a client with the token, and events come over it"
