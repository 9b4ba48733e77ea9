"""One run with an injected truth, for bench/truths.sh: truths.py ROW SEED FOLDER [again]

Starts a run without an end, injects once it has committed some steps, takes a copy of its recordings when the
injection has held for JUDGED steps, withdraws it, waits for some steps more, and prints a line: "ROW SEED
VERDICT: what was said and what steps took". VERDICT is right, worker (the cause is another one), wrong
(another worker), none, or not (the injection held nothing back). `again`: asks of a run that was kept.
"""
import glob
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time

import truths_server

HEDDLE = os.environ["HEDDLE_BIN"]
NEAR, NEAR_S, JUDGED, JUDGED_S, HOLDS, FACTOR, DOUBLINGS, DETECT_S = 9, 0.3, 20, 1.1, 2, 1.5, 5, 8
# of a reader: steps in which it looks for depth and size, those that may lie ready when it is held back,
# seconds until what it was late with has come, and steps that are judged: it waits once for many
WARM, READY, SETTLE_S = {"server": 60}, {"server": 40, "disk": 12, "io": 12}, {"server": 1}
READS = {"server": 130, "disk": 130, "io": 130}
CAUSE = {"quota": "compute", "slow": "compute", "server": "io", "disk": "io", "shaped": "link"}
HEALTHY = ("healthy", "busy")
BATCH, LIMIT_S = {"server": 24, "disk": 96}, 150

row, seed, folder = sys.argv[1], int(sys.argv[2]), os.path.abspath(sys.argv[3])
kind, nworkers = (row[:-1], 2) if row.endswith("2") else (row, 3)
run = os.path.join(folder, "run")

JOB = """job: {name: truth, seed: %d, steps: 1000000}
model: {use: "builtin:mlp", args: {input: [1, 28, 28], hidden: [256, 128], classes: 10}}
data: %s
batch: {global: %d, virtual_nodes: 12}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 1000000 steps, keep: 2}
eval: {every: 0}
elastic: {straggler: {act: false}}
comm: {buckets: 128KiB}
workers: {detect: %d s}
trace: {flight_slots: 65536}
"""


class Metrics:
    """Of a file that grows, each line read once: this process shall be no load."""
    got, at, rest = [], 0, b""

    def steps(self):
        try:
            with open(os.path.join(run, "metrics.ndjson"), "rb") as f:
                f.seek(self.at)
                more = f.read()
        except OSError:
            return self.got
        self.at += len(more)
        whole, _, self.rest = (self.rest + more).rpartition(b"\n")
        self.got += [json.loads(line) for line in whole.splitlines()]
        return self.got


metrics = Metrics()


def commits():
    """Steps that were committed since all workers take part."""
    got = metrics.steps()
    end = len(got)
    while end and got[end - 1]["workers"] != nworkers:
        end -= 1
    at = end
    while at and got[at - 1]["workers"] == nworkers:
        at -= 1
    return got[at:end]


def took(got):
    """Seconds a step; not the middle one, since a coordinator that waits for a processor commits several."""
    return (got[-1]["t"] - got[0]["t"]) / (len(got) - 1)


def pids():
    """Of the workers in the order of their numbers."""
    out = subprocess.run([HEDDLE, "status", run, "--json"], capture_output=True, text=True, check=True).stdout
    there = [w for w in json.loads(out)["workers"] if w["state"] == "member" and w["pid"] > 0]
    return [w["pid"] for w in sorted(there, key=lambda w: w["id"])]


def used_s(pid):
    """Processor time of a process."""
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def read_bytes(pid):
    with open("/proc/%d/io" % pid) as f:
        return int(re.search(r"read_bytes: (\d+)", f.read()).group(1))


# ---- what is injected: each takes (what the worker needs, strength), and may be called again ----

class Duty:
    """Stops a process for `stop` seconds of each `stop + go` from now on: a process of its own, on time
    where the user may; a thread of this one would wait for the others."""

    def __init__(self, pid, stop, go):
        self.pid = pid
        self.process = subprocess.Popen([sys.executable, "-c", """
import os, signal, sys, time
pid, stop, go = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
except OSError:
    pass
said = b"stopped\\n"
while True:
    os.kill(pid, signal.SIGSTOP)
    if said:
        os.write(1, said)
        said = b""
    time.sleep(stop)
    os.kill(pid, signal.SIGCONT)
    time.sleep(go)
""", str(pid), str(stop), str(go)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.process.stdout.readline()

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        try:
            os.kill(self.pid, signal.SIGCONT)
        except OSError:
            pass


def group(controller, old, new, pid):
    """The process goes into a control group with these rows, (file, text): of version 1, else of 2."""
    for parent, rows in ("/sys/fs/cgroup/" + controller, old), ("/sys/fs/cgroup", new):
        path = "%s/heddle-truth-%d" % (parent, os.getpid())
        if not os.path.isdir(parent):
            continue
        try:
            os.makedirs(path, exist_ok=True)
            for name, text in rows:
                with open(path + "/" + name, "w") as f:
                    f.write(text)
            with open(path + "/cgroup.procs", "w") as f:
                f.write(str(pid))
            return
        except OSError as error:
            why = error
            drop_groups()
    sys.exit("no control group for %s can be made here: %s" % (controller, why))


def drop_groups():
    for path in glob.glob("/sys/fs/cgroup/*/heddle-truth-%d" % os.getpid()) + \
            glob.glob("/sys/fs/cgroup/heddle-truth-%d" % os.getpid()):
        try:
            os.rmdir(path)
        except OSError:
            pass


def fail(pid, what):
    order = run + "/chaos/%d" % pid
    os.makedirs(run + "/chaos", exist_ok=True)
    if what:
        with open(run + "/order", "w") as f:
            f.write(what + "\n")
        os.rename(run + "/order", order)
    else:
        os.unlink(order)
    time.sleep(DETECT_S / 4 + 0.3)        # it looks for orders as often as it sends a heartbeat


def batch():
    return BATCH.get(kind, 384)


def disk_of(path):
    """The number of the whole disk under it."""
    number = os.stat(path).st_dev
    at = "/sys/dev/block/%d:%d" % (os.major(number), os.minor(number))
    if os.path.exists(at + "/partition"):
        at += "/.."
    with open(at + "/dev") as f:
        return f.read().strip()


class Injection:
    def __init__(self, pid, server, notices, net):
        self.pid, self.server, self.notices, self.net, self.duty = pid, server, notices, net, None

    def measure(self, cpu_s, nread, seconds, got):
        """What it needed in the steps before."""
        self.step_s = took(got)
        self.share = max(0.02, cpu_s / seconds)
        # of a sample its blocks of the disk, where it read ahead
        self.read = max(nread / seconds * self.step_s, batch() / nworkers * 4096)
        self.sent = statistics.median(step["bytes_out"] for step in got) / nworkers
        if self.notices:
            self.notices.give(self.pid)

    def apply(self, strength):
        late_ms = self.step_s * 1e3 * strength
        if kind in ("paused", "slow"):
            go = 0.1 if kind == "paused" else 0.04 * min(0.25, self.share / 3 / strength)
            stop = min(DETECT_S / 3, 0.4 * strength) if kind == "paused" else 0.04 - go
            if self.duty:
                self.duty.end()
            self.duty = Duty(self.pid, stop, go)
        elif kind in ("quota", "preemption"):
            us = max(1000, int(1e5 * self.share / 3 / strength))
            group("cpu", [("cpu.cfs_quota_us", "%d" % us)], [("cpu.max", "%d 100000" % us)], self.pid)
        elif kind == "disk":
            rate = max(4096, int(self.read / (2.5 * self.step_s) / strength))
            disk = disk_of(folder)
            group("blkio", [("blkio.throttle.read_bps_device", "%s %d" % (disk, rate))],
                  [("io.max", "%s rbps=%d" % (disk, rate))], self.pid)
        elif kind == "link":
            # fewer than all: one late piece of each is longer than a step
            late, often = min(25, max(1, int(self.step_s * 10))), min(0.99, 0.1 * strength)
            fail(self.pid, "wire.read:delay=%d/%g;wire.write:delay=%d/%g" % (late, often, late, often))
        elif kind == "io":
            fail(self.pid, "data.read:delay=%d" % max(15, late_ms))
        elif kind == "server":
            rows = batch() / nworkers * truths_server.ROW
            self.server.slow_down(self.pid, rows / (2.5 * self.step_s) / strength)
        elif kind == "shaped":
            self.net.shape(self.pid, self.sent * 8 / (2 * self.step_s) / strength)

    def withdraw(self):
        if self.duty:
            self.duty.end()
        elif kind in ("quota", "preemption"):
            group("cpu", [("cpu.cfs_quota_us", "-1")], [("cpu.max", "max 100000")], self.pid)
        elif kind == "disk":
            disk = disk_of(folder)
            group("blkio", [("blkio.throttle.read_bps_device", disk + " 0")],
                  [("io.max", disk + " rbps=max")], self.pid)
        elif kind in ("link", "io"):
            fail(self.pid, None)
        elif kind == "server":
            self.server.slow_down(0, 1e9)
        elif kind == "shaped":
            self.net.shape(self.pid, 0)


# ---- a run ----

class Net:
    """A network namespace for each worker, at one switch."""

    def __init__(self):
        self.names = ["hdt%d-%d" % (os.getpid(), i) for i in range(nworkers)]
        self.switch, self.joined = "hdt%d-s" % os.getpid(), []
        try:
            self.ip("netns", "add", self.switch)
            self.ip("-n", self.switch, "link", "add", "sw", "type", "bridge")
            self.ip("-n", self.switch, "link", "set", "sw", "up")
            for i, name in enumerate(self.names):
                self.ip("netns", "add", name)
                self.ip("-n", self.switch, "link", "add", "to%d" % i, "type", "veth", "peer", "name", "eth",
                        "netns", name)
                self.ip("-n", self.switch, "link", "set", "to%d" % i, "master", "sw", "up")
                self.ip("-n", name, "addr", "add", "10.78.0.%d/24" % (i + 1), "dev", "eth")
                self.ip("-n", name, "link", "set", "eth", "up")
                self.ip("-n", name, "link", "set", "lo", "up")
        except subprocess.CalledProcessError as error:
            self.gone()
            sys.exit("no network namespaces can be made here: %s" % error.stderr.strip())

    def ip(self, *words):
        subprocess.run(["ip", *words], check=True, capture_output=True, text=True)

    def inside(self, i):
        return ["ip", "netns", "exec", self.names[i]]

    def join(self, options, log):
        for i in range(1, nworkers):
            self.joined.append(subprocess.Popen(
                self.inside(i) + [HEDDLE, "worker", "--join", "10.78.0.1:7000", "--wait", "60s", "-s",
                                  "net.insecure_plaintext=true", "--record-in",
                                  os.path.join(folder, "far%d" % i)] + options, stdout=log, stderr=log))

    def shape(self, pid, bits_a_s):
        joined = [p.pid for p in self.joined]
        i = joined.index(pid) + 1 if pid in joined else 0
        how = ["tbf", "rate", "%dbit" % bits_a_s, "burst", "16kb", "latency", "50ms"]
        for where, dev in (self.names[i], "eth"), (self.switch, "to%d" % i):
            self.ip("netns", "exec", where, "tc", "qdisc", *(["replace", "dev", dev, "root"] + how
                                                            if bits_a_s else ["del", "dev", dev, "root"]))

    def gone(self):
        for p in self.joined:
            if p.poll() is None:
                p.kill()
            p.wait()
        for name in self.names + [self.switch]:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


class Notices:
    """A metadata service that says when a machine goes."""

    def __init__(self):
        self.script = os.path.join(folder, "script")
        open(self.script, "w").close()
        self.process = subprocess.Popen([HEDDLE, "chaos", "spot", "--script", self.script],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.base = self.process.stdout.readline().strip()
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def options(self):
        return ["-s", "elastic.notice.source=azure", "-s", "elastic.notice.every=100ms", "-s",
                "elastic.notice.base=" + self.base + "/w{pid}"]

    def give(self, pid):
        with open(self.script, "a") as f:
            f.write('{"node":"w%d","do":"notice","cloud":"azure","lead":3000}\n' % pid)


def wait_for(done, process, what):
    end = time.time() + LIMIT_S
    while not done():
        if process.poll() is not None:
            sys.exit("it ended before %s: see %s/log" % (what, folder))
        if time.time() > end:
            sys.exit("%d s and not %s: see %s/log" % (LIMIT_S, what, folder))
        time.sleep(0.01)


def until(n, process, what):
    wait_for(lambda: len(commits()) >= n, process, what)
    return commits()


def near(n, process, what, least=NEAR, least_s=NEAR_S):
    """The steps from number n on: as many as that and more, for that long and longer."""
    wait_for(lambda: len(commits()) > n + least and commits()[-1]["t"] - commits()[n]["t"] >= least_s,
             process, what)
    return commits()[n:]


def hold(injection, process):
    """Injects until it holds: how often it was doubled, and how many steps there are then."""
    first = WARM.get(kind, 2)
    until(first + 1, process, "%d steps" % first)
    cpu, nread, begin = used_s(injection.pid), read_bytes(injection.pid), time.time()
    got = near(first, process, "steps before it")
    injection.measure(used_s(injection.pid) - cpu, read_bytes(injection.pid) - nread, time.time() - begin,
                      got)
    doubled, n = 0, first + len(got)
    if kind in HEALTHY:
        return 0, n

    def slow(of):
        return len(of) > n + NEAR and took(of[-NEAR - 1:]) >= HOLDS * injection.step_s

    while True:
        injection.apply(2 ** doubled)
        n = len(commits()) + 1            # the first of them began before it
        most = n + NEAR + 1 + READY.get(kind, 0)
        wait_for(lambda: slow(commits()) or len(commits()) >= most, process, "steps with what is injected")
        if slow(commits()) or doubled == DOUBLINGS:
            return doubled, len(commits())
        doubled += 1


def end_all(process):
    """Its coordinator and workers are processes of their own."""
    subprocess.run([HEDDLE, "stop", run, "--now"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   timeout=60, check=False)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        pass
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as f:
                words = f.read().split(b"\0")
            if run.encode() in words:
                os.kill(int(path.split("/")[2]), signal.SIGKILL)
        except (OSError, ValueError):
            pass


def start(server, notices, net, log):
    data = "{kind: synthetic, count: 6000}"
    if server:
        path = "http://127.0.0.1:%d/a-00.tar" % server.server_address[1]
        data = '{kind: webdataset, path: "%s"}' % path
    if kind == "disk":
        path = os.path.join(folder, "a-00.tar")
        with open(path, "wb") as f:
            f.write(truths_server.shard())
        data = '{kind: webdataset, path: "%s", direct: always}' % path
    job = os.path.join(folder, "job.yaml")
    with open(job, "w") as f:
        f.write(JOB % (seed, data, batch(), DETECT_S))
    options = ["--devices", "1", "--threads", "1"]
    words = [HEDDLE, "run", job, "--out", run, "--workers", "1" if net else str(nworkers)] + options
    words += notices.options() if notices else []
    if net:
        words = net.inside(0) + words + ["--listen", "10.78.0.1:7000", "-s", "net.insecure_plaintext=true"]
    process = subprocess.Popen(words, stdout=log, stderr=log)
    if net:
        wait_for(lambda: len(metrics.steps()) > 1, process, "a step")
        net.join(options, log)
    return process


def keep():
    """A copy of what all have recorded until now."""
    to = os.path.join(folder, "kept", "flight")
    os.makedirs(to, exist_ok=True)
    for i, of in enumerate([run] + sorted(glob.glob(os.path.join(folder, "far*")))):
        for path in glob.glob(of + "/flight/*.hdfr"):
            shutil.copy(path, os.path.join(to, "%d-%s" % (i, os.path.basename(path))))


def record():
    """Runs it; what is known of it from outside."""
    os.makedirs(folder, exist_ok=True)
    log = open(os.path.join(folder, "log"), "w")
    server = truths_server.serve() if kind == "server" else None
    notices = Notices() if kind == "preemption" else None
    net = Net() if kind == "shaped" else None
    load = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
            for _ in range(os.cpu_count() + 2 if kind == "busy" else 0)]
    process = injection = None
    try:
        process = start(server, notices, net, log)
        until(1, process, "all %d workers" % nworkers)
        there = pids() + [p.pid for p in net.joined] if net else pids()
        injection = Injection(there[seed % len(there)], server, notices, net)
        doubled, n = hold(injection, process)
        got = near(n - 1, process, "steps with it", READS.get(kind, JUDGED), JUDGED_S)
        if not os.path.exists("/proc/%d" % injection.pid):
            sys.exit("the worker was lost: see %s/run/events.ndjson" % folder)
        keep()
        injection.withdraw()
        time.sleep(SETTLE_S.get(kind, 0))
        after = near(len(commits()) + 2, process, "steps after it")
        subprocess.run([HEDDLE, "stop", run], stdout=log, stderr=log, check=False)
        process.wait(60)
    finally:
        if injection and injection.duty:
            injection.withdraw()
        if process and process.poll() is None:
            end_all(process)
        if net:
            net.gone()
        for p in load + ([notices.process] if notices else []):
            p.kill()
            p.wait()
        drop_groups()
    known = {"pid": injection.pid, "doubled": doubled, "before_s": injection.step_s,
             "with_s": took(got), "after_s": max(1e-3, took(after))}
    with open(os.path.join(folder, "known.json"), "w") as f:
        json.dump(known, f)
    return known


def ask():
    out = subprocess.run([HEDDLE, "trace", "analyze", os.path.join(folder, "kept"), "--json"],
                         stdout=subprocess.PIPE, text=True, check=True).stdout
    with open(os.path.join(folder, "analysis.json"), "w") as f:
        f.write(out)
    return json.loads(out)["stragglers"]


def main():
    if "again" in sys.argv:
        with open(os.path.join(folder, "known.json")) as f:
            known = json.load(f)
    else:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("it was ended"))
        known = record()
    named = ask()
    said = "%d %s" % (named[0]["worker"], named[0]["cause"]) if named else "none"
    ratio = known["with_s"] / max(known["before_s"], known["after_s"])
    if kind in HEALTHY:
        verdict = "none" if not named else "wrong"
    elif ratio < FACTOR:
        verdict = "not"
    elif not named:
        verdict = "none"
    elif named[0]["pid"] != known["pid"]:
        verdict = "wrong"
    else:
        verdict = "right" if named[0]["cause"] == CAUSE.get(kind, kind) else "worker"
    print("%s %d %s: %s; steps of %.0f ms took %.0f, then %.0f; doubled %d times" % (
        row, seed, verdict, said, known["before_s"] * 1e3, known["with_s"] * 1e3, known["after_s"] * 1e3,
        known["doubled"]))


main()
