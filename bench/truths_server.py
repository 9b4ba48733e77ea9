"""Shards over HTTP for bench/truths.py: one process of this machine may get its answers late."""
import glob
import http.server
import io as inout
import os
import struct
import tarfile
import threading
import time

SAMPLES = 600


class Server(http.server.ThreadingHTTPServer):
    """Serves the shards; one process of this machine gets its answers late."""
    daemon_threads = True
    slow_pid, late_s, nrequests = 0, 0.01, 0


def has_port(pid, port):
    """Is it the process's end of a connection?"""
    with open("/proc/net/tcp") as f:
        inodes = {line.split()[9] for line in f if line.split()[1].endswith(":%04X" % port)}
    for fd in glob.glob("/proc/%d/fd/*" % pid):
        try:
            if os.readlink(fd)[8:-1] in inodes:
                return True
        except OSError:
            pass
    return False


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version, slow = "HTTP/1.1", None

    def log_message(self, *_):
        pass

    def is_slow(self):
        """Does the slow process have the other end of this connection? Looked up once for each."""
        if self.server.slow_pid and self.slow is None:
            self.slow = has_port(self.server.slow_pid, self.client_address[1])
        return self.server.slow_pid and self.slow

    def do_HEAD(self):
        self.do_GET(False)

    def do_GET(self, body=True):
        data = self.server.files.get(self.path.lstrip("/"))
        if data is None:
            self.send_error(404)
            return
        self.server.nrequests += 1
        if self.is_slow():
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
