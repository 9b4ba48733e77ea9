"""One run with an injected truth, for bench/truths.sh: truths.py KIND SEED WORKERS FOLDER

Starts a run without an end, injects once it has committed some steps, stops it STEPS steps later, and prints
what `heddle trace analyze` names: "named WORKER CAUSE" or "none".
"""
import glob
import http.server
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tarfile
import threading
import time
import io as inout

HEDDLE = os.environ["HEDDLE_BIN"]
BEFORE, STEPS, SAMPLES = 6, int(os.environ.get("STEPS", "23")), 600
kind, seed, nworkers, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
worker = seed % nworkers
run = os.path.join(folder, "run")

JOB = """job: {name: truth, seed: %d, steps: 1000000}
model: {use: "builtin:mlp", args: {input: [1, 28, 28], hidden: [512, 256], classes: 10}}
data: %s
batch: {global: %s, virtual_nodes: 12}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 1000000 steps, keep: 2}
eval: {every: 0}
elastic: {straggler: {act: false}}
workers: {detect: 4 s}
trace: {flight_slots: 8192}
"""


def steps_done():
    try:
        with open(run + "/metrics.ndjson", "rb") as f:
            return f.read().count(b"\n")
    except OSError:
        return 0


def wait_for(n, process, most_s=90):
    end = time.time() + most_s
    while steps_done() < n and process.poll() is None and time.time() < end:
        time.sleep(0.01)
    return steps_done() >= n


def pid_of(number):
    out = subprocess.run([HEDDLE, "status", run, "--json"], capture_output=True, text=True, check=True).stdout
    return next(w["pid"] for w in json.loads(out)["workers"] if w["id"] == number)


class Duty(threading.Thread):
    """Stops a process for `stop` of each `stop + go` seconds; on time where the user may."""

    def __init__(self, pid, stop, go):
        super().__init__(daemon=True)
        self.pid, self.stop, self.go, self.over = pid, stop, go, False

    def run(self):
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
        except OSError:
            pass
        try:
            while not self.over:
                os.kill(self.pid, signal.SIGSTOP)
                time.sleep(self.stop)
                os.kill(self.pid, signal.SIGCONT)
                time.sleep(self.go)
        except OSError:
            pass


def quota(pid):
    """A twentieth of a processor."""
    for parent, row in ("/sys/fs/cgroup/cpu", ("cpu.cfs_quota_us", "5000")), \
            ("/sys/fs/cgroup", ("cpu.max", "5000 100000")):
        group = "%s/heddle-truth-%d" % (parent, os.getpid())
        if not os.path.isdir(parent):
            continue
        try:
            os.mkdir(group)
            with open(group + "/" + row[0], "w") as f:
                f.write(row[1])
            with open(group + "/cgroup.procs", "w") as f:
                f.write(str(pid))
            return
        except OSError:
            drop_groups()
    sys.exit("no control group with a quota can be made here")


def drop_groups():
    for group in glob.glob("/sys/fs/cgroup/cpu/heddle-truth-%d" % os.getpid()) + \
            glob.glob("/sys/fs/cgroup/heddle-truth-%d" % os.getpid()):
        try:
            os.rmdir(group)
        except OSError:
            pass


def fail(pid, what):
    os.makedirs(run + "/chaos", exist_ok=True)
    with open(run + "/order", "w") as f:
        f.write(what + "\n")
    os.rename(run + "/order", run + "/chaos/%d" % pid)


class Server(http.server.ThreadingHTTPServer):
    """Serves the shards; one process of this machine gets its answers late."""
    daemon_threads = True
    slow_pid, late_s = 0, 0.01


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def owner(self):
        """Does the slow process have the other end of this connection?"""
        port = self.client_address[1]
        with open("/proc/net/tcp") as f:
            inodes = {line.split()[9] for line in f if line.split()[1].endswith(":%04X" % port)}
        try:
            fds = os.listdir("/proc/%d/fd" % self.server.slow_pid)
        except OSError:
            return False
        for fd in fds:
            try:
                name = os.readlink("/proc/%d/fd/%s" % (self.server.slow_pid, fd))
            except OSError:
                continue
            if name[8:-1] in inodes:
                return True
        return False

    def do_HEAD(self):
        self.do_GET(False)

    def do_GET(self, body=True):
        data = self.server.files.get(self.path.lstrip("/"))
        if data is None:
            self.send_error(404)
            return
        if self.server.slow_pid and self.owner():
            time.sleep(self.server.late_s)
        wanted = self.headers.get("Range")
        first, last = 0, len(data) - 1
        if wanted:
            a, b = wanted.split("=")[1].split("-")
            first, last = int(a), min(int(b) if b else last, last)
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(last + 1 - first))
        self.send_header("Accept-Ranges", "bytes")
        if wanted:
            self.send_header("Content-Range", "bytes %d-%d/%d" % (first, last, len(data)))
        self.end_headers()
        if body:
            self.wfile.write(data[first:last + 1])


def shard():
    to = inout.BytesIO()
    with tarfile.open(fileobj=to, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for i in range(SAMPLES):
            rows = struct.pack("<784f", *(((i * 31 + k * 17) % 97) / 97 for k in range(784)))
            for name, data in ("%06d.raw" % i, rows), ("%06d.cls" % i, b"%d" % (i % 10)):
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, inout.BytesIO(data))
    return to.getvalue()


def serve():
    server = Server(("127.0.0.1", 0), Handler)
    server.files = {"a-%02d.tar" % k: shard() for k in range(1)}
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


class Notices:
    """A metadata service that says when a machine goes."""

    def __init__(self):
        self.script = os.path.join(folder, "script")
        open(self.script, "w").close()
        self.process = subprocess.Popen([HEDDLE, "chaos", "spot", "--script", self.script],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.base = self.process.stdout.readline().strip()
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def give(self, pid):
        with open(self.script, "a") as f:
            f.write('{"node":"w%d","do":"notice","cloud":"azure","lead":3000}\n' % pid)


def step_ms():
    """As long as half of the steps took at most."""
    with open(run + "/metrics.ndjson") as f:
        took = sorted(json.loads(line)["step_ms"] for line in f if line.endswith("\n"))
    return took[len(took) // 2]


def inject(pid, server, notices):
    """What is injected is no shorter than a step, so that it is what holds the run back, however busy the
    machine is."""
    duty = {"paused": (0.4, 0.1), "slow": (0.03, 0.01)}.get(kind)
    if duty:
        thread = Duty(pid, *duty)
        thread.start()
        return thread
    if kind in ("quota", "preemption"):
        quota(pid)
    if notices:
        notices.give(pid)
    if kind == "link":
        late = max(3, int(step_ms() / 20))
        fail(pid, "wire.read:delay=%d;wire.write:delay=%d" % (late, late))
    if kind == "io":
        fail(pid, "data.read:delay=%d" % max(15, step_ms()))
    if server:
        server.late_s = max(0.01, step_ms() / 12e3)
        server.slow_pid = pid
    return None


def end_all(process):
    subprocess.run([HEDDLE, "stop", run, "--now"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   timeout=60, check=False)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        pass
    own = os.path.realpath(run).encode()
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as f:
                words = f.read().split(b"\0")
            if own in words or run.encode() in words:
                os.kill(int(path.split("/")[2]), signal.SIGKILL)
        except (OSError, ValueError):
            pass


def main():
    os.makedirs(folder, exist_ok=True)
    server = serve() if kind == "server" else None
    notices = Notices() if kind == "preemption" else None
    data = "{kind: synthetic, count: 6000}"
    if server:
        data = '{kind: webdataset, path: "http://127.0.0.1:%d/a-00.tar"}' % server.server_address[1]
    job = os.path.join(folder, "job.yaml")
    with open(job, "w") as f:
        f.write(JOB % (seed, data, os.environ.get("BATCH", "768" if kind != "server" else "96")))
    more = ["-s", "elastic.notice.source=azure", "-s", "elastic.notice.every=100ms", "-s",
            "elastic.notice.base=" + notices.base + "/w{pid}"] if notices else []
    log = open(os.path.join(folder, "log"), "w")
    process = subprocess.Popen([HEDDLE, "run", job, "--out", run, "--workers", str(nworkers), "--devices",
                                "1", "--threads", "1"] + more, stdout=log, stderr=log)
    duty = None
    try:
        if not wait_for(BEFORE, process):
            sys.exit("it does not run: see " + log.name)
        duty = inject(pid_of(worker), server, notices)
        if not wait_for(steps_done() + STEPS, process):
            sys.exit("it is stuck: see " + log.name)
        subprocess.run([HEDDLE, "stop", run], stdout=log, stderr=log, check=False)
        if duty:
            duty.over = True
        process.wait(60)
    finally:
        if duty:
            duty.over = True
            duty.join()
        if process.poll() is None:        # its coordinator and workers are processes of their own
            end_all(process)
        if notices:
            notices.process.kill()
        drop_groups()
    out = subprocess.run([HEDDLE, "trace", "analyze", run, "--steps", "20", "--json"], stdout=subprocess.PIPE,
                         text=True, check=True).stdout
    with open(os.path.join(folder, "analysis.json"), "w") as f:
        f.write(out)
    named = json.loads(out)["stragglers"]
    print("named %d %s" % (named[0]["worker"], named[0]["cause"]) if named else "none")


main()
