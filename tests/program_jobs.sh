#!/bin/bash
# heddle submit, jobs, explain, cancel, prio, status and top without RUN: what the verbs say and how they
# fail, against a scheduler that is none: another implementation of HTTP with answers by hand. The scheduler
# itself: program_cluster.sh.
. "$(dirname "$0")/program.sh"
write_jobs 5
mkdir -m 700 d
expect 3 heddle jobs --dir d
says 'no scheduler serves d: start one with `heddle serve --dir d`'
expect 3 heddle submit mlp.yaml --dir d
says 'no scheduler serves d'
expect 3 heddle status --dir d
says 'no scheduler serves d'
passed "a folder without a scheduler is named"

# An order that is wrong is refused before it is sent: there is no scheduler to refuse it.
expect 3 heddle submit none.yaml --dir d
says 'none.yaml'
sed 's/batch: .*/batch: {global: 26, virtual_nodes: 99}/' mlp.yaml >bad.yaml
expect 2 heddle submit bad.yaml --dir d
says 'bad.yaml:'
says 'virtual_nodes'
expect 2 heddle submit mlp.yaml --dir d -s optim.lr=fast
says 'optim.lr'
expect 2 heddle submit mlp.yaml --dir d --priority 0
says '--priority 0'
expect 2 heddle submit mlp.yaml --dir d --deadline soon
says 'as 90s, 45min'
expect 2 heddle submit mlp.yaml --dir d --scale 1.5
says '--scale 1.5'
expect 2 heddle submit mlp.yaml --dir d --rates cpu:fast
says '--rates cpu'
expect 2 heddle submit mlp.yaml --dir d --after 7:good
says '--after 7:good: jobs with commas'
expect 2 heddle submit mlp.yaml --dir d --after 7,,8
says 'jobs with commas'
expect 2 heddle submit mlp.yaml --dir d --array 9-0
says 'array "9-0": indices as 0-9'
expect 2 heddle submit mlp.yaml --dir d --time never
says '--time never: a time'
expect 2 heddle submit mlp.yaml --dir d --expect 0s
says '--expect 0s: a time'
expect 2 heddle prio 1 -1 --dir d
says 'a weight from'
expect 2 heddle explain ../etc --dir d
says 'neither a job'
expect 2 heddle jobs --dir d --state sleeping
says 'queued'
passed "orders that make no sense are not sent"

command -v python3 >/dev/null || { echo "skip: no python3 to be asked"; exit 77; }
cat >fake.py <<'END'
import json, socketserver, sys
from http.server import BaseHTTPRequestHandler

def summary(i, state, why=""):
    runs = state == "running"
    return {"id": i, "name": "job%d" % i, "user": "ann", "state": state, "step": 3, "steps": 10,
            "priority": 1.0, "scale": 2, "devices_n": 2 if runs else 0, "type": "fast" if runs else "",
            "rate": 1.5, "submitted_s": 1, "started_s": -1, "ended_s": -1, "deadline_s": -1, "exit": -1,
            "why": why}

keys = []

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *a): pass
    def answer(self, status, body, raw=None):
        text = json.dumps(body).encode() if raw is None else raw
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(text)
        self.close_connection = True
    def no(self, status, code, text): self.answer(status, {"error": text, "code": code, "exit": 0})
    def do_GET(self):
        path, _, query = self.path.partition("?")
        assert self.headers["Host"] == "localhost"
        if path == "/v1/jobs":
            q = dict(p.split("=") for p in query.split("&"))
            first = int(q.get("after", 0)) + 1
            if q.get("state") == "timeout":
                jobs, more = [summary(i, "done" if i < 4 else "running") for i in range(1, 7)], False
                for j in jobs[1:5]: j["array"] = 2
                for j in jobs[:3]: j["ended_s"] = 9
            elif q.get("state") == "queued":
                jobs, more = [summary(7, "queued", "others are before it")], True
            else:
                jobs = [summary(i, "running" if i % 2 else "queued") for i in range(first, first + 2)]
                more = first < 5
            self.answer(200, {"jobs": jobs, "more": more})
        elif path == "/v1/status":
            fast = {"type": "fast", "devices": 4, "busy": 2, "free": 2, "lost": 0, "price_usd_h": 2.5,
                    "speed": 1}
            self.answer(200, {"pid": 1, "dir": "/d", "policy": "las", "round_s": 60, "now_s": 10,
                              "boundary_s": 12.5, "since_s": 0, "counts": {"queued": 30, "running": 1},
                              "running": [summary(1, "running")], "types": [fast],
                              "slow": [{"host": "10.0.0.4", "jobs": 2, "judged": 2, "slow_jobs": 2,
                                        "slow": True, "cause": "data", "times": 1.5, "share": 1,
                                        "since_s": 5, "text": "host 10.0.0.4 is slow by waiting"}]})
        elif path == "/v1/jobs/7/why":
            fast = {"type": "fast", "devices": 4, "free": 0, "steps_s": 1.5, "share": 0.25, "received_s": 10,
                    "due_s": 12, "priority": 0.5}
            self.answer(200, {"id": 7, "name": "job7", "state": "queued", "code": "OUTRANKED",
                              "text": "the last fast went to job 1",
                              "more": ["at priority 2 it would start now"], "boundary_s": 12.5,
                              "types": [fast]})
        elif path == "/v1/jobs/garbage/why": self.answer(200, None, b"<html>")
        elif path == "/v1/jobs/short/why":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}")
            self.close_connection = True
        elif path == "/v1/jobs/chunks/why":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n")
            self.close_connection = True
        elif path == "/v1/jobs/moved/why":
            self.wfile.write(b"HTTP/1.1 302 Found\r\nLocation: http://example.org/\r\n"
                             b"Content-Length: 2\r\n\r\n{}")
            self.close_connection = True
        elif path == "/v1/jobs/silent/why": self.close_connection = True
        else: self.no(404, -103, "there is no job of that name")
    def do_POST(self):
        text = self.rfile.read(int(self.headers["Content-Length"]))
        ask = json.loads(text) if text else {}
        with open("asked", "w") as f: json.dump(ask, f)
        if self.path == "/v1/jobs": keys.append(ask["key"])
        name = ask.get("name", "mlp")
        if name == "never" or (name == "lost" and keys.count(ask["key"]) == 1): self.close_connection = True
        elif self.path == "/v1/jobs":
            why = {"why": "UNRUNNABLE: none has 2"} if name == "large" else {}
            self.answer(200, {"id": 9, "name": name, "run": "/d/runs/9-mlp", "state": "queued", **why})
        elif self.path == "/v1/jobs/7/cancel" and ask.get("tasks"):
            self.answer(200, {"id": 7, "state": "cancelled", "tasks": 3})
        elif self.path in ("/v1/jobs/7/hold", "/v1/jobs/7/release"):
            self.answer(200, {"id": 7, "state": "queued", "tasks": 1})
        elif self.path == "/v1/jobs/7/cancel": self.answer(200, {"id": 7, "state": "cancelled"})
        elif self.path == "/v1/jobs/7/priority": self.answer(200, {"id": 7, "priority": ask["priority"]})
        else: self.no(400, -301, "job 8 is over")

class Server(socketserver.UnixStreamServer):
    request_queue_size = 16
    def get_request(self):
        sock, _ = super().get_request()
        return sock, ("", 0)
Server(sys.argv[1], Handler).serve_forever()
END
python3 fake.py d/heddle.sock 2>fake.err &
for i in $(seq 100); do [ -S d/heddle.sock ] && break; read -rt 0.1 <> <(:) || :; done

expect 0 heddle submit mlp.yaml --dir d --priority 2.5 --deadline 2h --scale 2 --rates fast:3.5,slow=0 \
	--name mine -s optim.lr=1e-3
[ "$(cat out)" = 9 ] || failed "the job's number does not stand alone on stdout"
says 'job 9 (mine) is queued; its run is /d/runs/9-mlp'
says 'heddle explain 9 --dir d'
PWD_HERE=$PWD python3 - <<'END' || failed "the order is wrong"
import json, os
o = json.load(open("asked"))
assert o["job"] == open("mlp.yaml").read() and o["folder"] == os.environ["PWD_HERE"], o
assert o["priority"] == 2.5 and o["deadline_s"] == 7200 and o["scale"] == 2, o
assert o["rates"] == {"fast": 3.5, "slow": 0}, o
assert o["name"] == "mine" and o["set"] == ["optim.lr=1e-3"], o
END
expect 0 env HEDDLE_OPTIM_LR=0.5 HEDDLE_BATCH_GLOBAL=13 "$HEDDLE_BIN" submit mlp.yaml --dir d -s optim.lr=1e-3
python3 - <<'END' || failed "variables do not go along, or not before -s"
import json
s = json.load(open("asked"))["set"]
assert sorted(s[:2]) == ["batch.global=13", "optim.lr=0.5"] and s[2:] == ["optim.lr=1e-3"], s
END
expect 0 heddle submit mlp.yaml --dir d --name large -q
says 'job 9 waits as long as it is so. UNRUNNABLE: none has 2'
expect 0 heddle submit mlp.yaml --dir d --json
json_ok
says '"id":9'
passed "a job is sent with what was asked"

# The second time with the same key: the fake answers no order the first time that has this name.
expect 0 heddle submit mlp.yaml --dir d --name lost
says 'job 9 (lost) is queued'
expect 75 heddle submit mlp.yaml --dir d --name never
says 'says whether it took the job'
passed "an order without an answer is sent once more, as the same one"

expect 0 heddle jobs --dir d
[ "$(grep -c '^ *[1-6] ' out)" = 6 ] || failed "not three pages of two jobs"
says 'job4             ann        queued               3/10        1     0/2  -'
expect 0 heddle jobs --dir d --state timeout
[ "$(grep -c '^ *[1-6] ' out)" = 3 ] || failed "an array is not one line"
says 'job2             ann        running             12/40        1     4/4  fast  '
says 'array of 4 tasks: 0 wait, 2 have'
says 'have devices, 2 are done, 0 ended otherwise'
expect 0 heddle jobs --dir d --state timeout --tasks
[ "$(grep -c '^ *[1-6] ' out)" = 6 ] || failed "tasks have no lines of their own"
expect 0 heddle jobs --dir d --json
json_ok
[ "$(wc -l <out)" = 6 ] || failed "not an object a job"
expect 0 heddle explain 7 --dir d
says 'job 7 (job7) is queued: OUTRANKED'
says 'the last fast went to job 1'
says 'at priority 2 it would start now'
says 'fast                4      0          1.5   0.2500           10         12        0.5'
expect 0 heddle explain 7 --dir d --json
json_ok
says '"code":"OUTRANKED"'
expect 0 heddle cancel 7 --dir d
says 'job 7 is cancelled'
expect 0 heddle cancel 7 --tasks --dir d
says '3 tasks are cancelled'
expect 0 heddle hold 7 --dir d
says 'job 7 is queued'
expect 0 heddle release 7 --dir d
says 'job 7 is queued'
expect 0 heddle submit mlp.yaml --dir d --hold --after 7,mine:any --array '0-3%2' --time 2h --expect 90s
python3 - <<'END' || failed "the terms of an order are wrong"
import json
o = json.load(open("asked"))
assert o["held"] is True and o["after"] == ["7", "mine:any"] and o["array"] == "0-3%2", o
assert o["limit_s"] == 7200 and o["expect_s"] == 90, o
END
expect 0 heddle prio 7 3 --dir d
says 'job 7 has priority 3'
expect 0 heddle status --dir d
says 'policy las  rounds of 60 s  next in 2.5 s'
says 'host 10.0.0.4 is slow by waiting'
says 'jobs:  queued 30  running 1'
says 'fast                4      2      2      0          2.5        1'
says 'others are before it'
says 'and 29 more that wait'
expect 0 heddle status --dir d --json
json_ok
(cd d && expect 0 heddle status) || exit 1
passed "lists, reasons, orders and the cluster at a glance"

timeout -s INT 2 "$HEDDLE_BIN" top --dir d --every 50 >out 2>err
[ "$(grep -c 'policy las' out)" -ge 3 ] || failed "top looked less than three times"
expect 2 heddle top --dir d --every 3
says '--every is at least 50'
passed "top looks again and again"

expect 3 heddle explain nothing --dir d
says 'there is no job of that name'
expect 2 heddle cancel 8 --dir d
says 'job 8 is over'
for kind in garbage short chunks moved; do
	expect 1 heddle explain $kind --dir d
	says 'does not answer as a daemon of this version does'
done
expect 75 heddle explain silent --dir d
says 'without an answer'
passed "what the scheduler refuses, and answers that are none, are reported with their codes"
[ -s fake.err ] && failed "$(cat fake.err)"
exit 0
