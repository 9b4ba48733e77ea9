#!/bin/bash
# A scheduler with 10,000 queued jobs: how long a submission, a status (asked over the socket, and by the
# verb) and a list take. The goal: status below 100 ms. Jobs want more devices than there are, so they stay;
# nothing trains meanwhile. $1: how many jobs. Prints the table of docs/results/daemon.md. The store lies in
# TMPDIR: a submission is one fsync there.
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
heddle=${HEDDLE_BIN:-build/release/heddle} n=${1:-10000}
[ -x "$heddle" ] || { echo "no program at $heddle; ./dev build makes it" >&2; exit 2; }
command -v python3 >/dev/null || { echo "python3 asks here, and is not there" >&2; exit 2; }
heddle=$(realpath "$heddle")
dir=$(mktemp -d)
"$heddle" serve --dir "$dir" --pool cpu:2 --policy "${POLICY:-las}" --round 60 -q 2>"$dir/serve.err" &
daemon=$!
trap 'kill $daemon 2>/dev/null; wait; rm -rf "$dir"' EXIT
echo "$(with_load), policy ${POLICY:-las}"
HEDDLE=$heddle python3 - "$dir" "$n" "$daemon" <<'END'
import http.client, json, os, socket, subprocess, sys, time
dir, n, pid = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(dir + "/heddle.sock")

def ask(method, target, body=None):
    c = Unix("localhost")
    body, head = (None, {}) if body is None else (json.dumps(body), {"Content-Type": "application/json"})
    c.request(method, target, body, head)
    r = c.getresponse()
    data = r.read()
    c.close()
    if r.status != 200: sys.exit("%s %s: %s" % (method, target, data.decode()))
    return data

def timed(call, times):
    took = []
    for _ in range(times):
        begin = time.perf_counter()
        call()
        took.append((time.perf_counter() - begin) * 1e3)
    return sorted(took)

def row(name, t):
    print("| %s | %d | %.2f | %.2f | %.2f |" % (name, len(t), t[len(t) // 2], t[int(len(t) * 0.95)], t[-1]))

def verb(*words): subprocess.run([heddle, *words], stdout=subprocess.DEVNULL, check=True)

for _ in range(500):
    if os.path.exists(dir + "/heddle.sock"): break
    time.sleep(0.02)
text = """job: {name: waits, steps: 10}
model: {use: "builtin:mlp", args: {input: [1, 4, 4], hidden: [4], classes: 2}}
data: {kind: synthetic, count: 8}
batch: {global: 8, virtual_nodes: 8}
"""
job = {"job": text, "folder": dir, "scale": 8}
submits = timed(lambda: ask("POST", "/v1/jobs", job), n)
print("| question | times | median ms | 95 % | most |\n|---|--:|--:|--:|--:|")
row("submit", submits)
row("GET /v1/status", timed(lambda: ask("GET", "/v1/status"), 200))
row("GET /v1/jobs?limit=1000", timed(lambda: ask("GET", "/v1/jobs?limit=1000"), 20))
row("GET /v1/jobs/N/why", timed(lambda: ask("GET", "/v1/jobs/%d/why?policy=false" % (n // 2)), 20))
heddle = os.environ["HEDDLE"]
row("heddle status", timed(lambda: verb("status", "--dir", dir), 50))
row("heddle version (the process alone)", timed(lambda: verb("version"), 50))
counts = json.loads(ask("GET", "/v1/status"))["counts"]
if counts["queued"] != n: sys.exit("%s: not all jobs wait" % counts)
memory = [l.split()[1] for l in open("/proc/%d/status" % pid) if l.startswith("VmHWM")][0]
print("\nmost memory of the scheduler: %d MB; %d jobs wait" % (int(memory) // 1024, counts["queued"]))
END
