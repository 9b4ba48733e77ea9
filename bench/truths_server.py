"""Shards over HTTP for bench/truths.py: one process of this machine may get its answers at a rate."""
import glob
import http.server
import io as inout
import os
import struct
import tarfile
import threading
import time

SAMPLES, ROW = 600, 784 * 4                # bytes


def ports_of(pid, port):
    """Its ends of connections to this port."""
    with open("/proc/net/tcp") as f:
        rows = [line.split() for line in f]
    to = ":%04X" % port
    mine = {row[9]: int(row[1].split(":")[1], 16) for row in rows if row[2].endswith(to)}
    got = set()
    for fd in glob.glob("/proc/%d/fd/*" % pid):
        try:
            got.add(mine.get(os.readlink(fd)[8:-1], 0))
        except OSError:
            pass
    return got


class Server(http.server.ThreadingHTTPServer):
    """Serves the shards; one process of this machine gets its answers at a rate, one after another."""
    daemon_threads = True
    slow_pid, slow_ports, bytes_a_s = 0, frozenset(), 1e9
    one = threading.Lock()

    def slow_down(self, pid, bytes_a_s):
        """pid 0: none any more."""
        self.bytes_a_s = bytes_a_s
        if pid and pid != self.slow_pid:
            self.slow_ports = ports_of(pid, self.server_address[1])
        self.slow_pid = pid

    def hold(self, nbytes):
        """For what so many bytes take, unless the rate is withdrawn meanwhile."""
        with self.one:
            begin = time.time()
            while self.slow_pid and time.time() < begin + nbytes / self.bytes_a_s:
                time.sleep(0.001)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # an answer is one piece: of two the second would wait up to 40 ms for the acknowledgement of the first
    disable_nagle_algorithm, wbufsize = True, -1

    def log_message(self, *_):
        pass

    def setup(self):
        super().setup()
        if self.server.slow_pid:          # a connection that is newer than the rate
            self.server.slow_ports = self.server.slow_ports | ports_of(self.server.slow_pid,
                                                                       self.server.server_address[1])

    def do_HEAD(self):
        self.do_GET(False)

    def do_GET(self, body=True):
        data = self.server.files.get(self.path.lstrip("/"))
        if data is None:
            self.send_error(404)
            return
        wanted = self.headers.get("Range")
        first, last = 0, len(data) - 1
        if wanted:
            a, b = wanted.split("=")[1].split("-")
            first, last = int(a), min(int(b) if b else last, last)
        if self.server.slow_pid and self.client_address[1] in self.server.slow_ports:
            self.server.hold(last + 1 - first)
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
