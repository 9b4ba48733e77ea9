#!/usr/bin/env python3
"""An object store for tests: files of a folder by HTTP ranges, or as S3 with checked signatures, and wrong on
demand. Argument: the folder, and the file that gets its address. What stands in FOLDER/.script, a line each,
"KIND N [ARG]", is done to the next N answers to ranges longer than one byte:
  whole, wrong, long, short, norange, busy SECONDS, status CODE, reset, slow, etag, loop
FOLDER/.log has a line "status path range" for each request; FOLDER/.delay_ms: before each answer.
Paths /elsewhere/PATH and /bucket/elsewhere/PATH lead to PATH at the address in FOLDER/.elsewhere;
FOLDER/.keys has a line "host path" for each request that came with a line of a key."""
import hashlib, hmac, http.server, os, re, socketserver, sys, threading, time, urllib.parse

ROOT, WHERE = sys.argv[1], sys.argv[2]
LOCK = threading.Lock()
KEYS = {"AKIDTEST": "secret-of-the-test"}


def next_script():
    with LOCK:
        path = os.path.join(ROOT, ".script")
        if not os.path.exists(path):
            return None
        lines = [line.split() for line in open(path) if line.strip()]
        if not lines:
            return None
        kind, n, arg = lines[0][0], int(lines[0][1]), (lines[0] + [""])[2]
        lines[0][1] = str(n - 1)
        with open(path + ".tmp", "w") as f:
            f.writelines(" ".join(line) + "\n" for line in lines if int(line[1]) > 0)
        os.rename(path + ".tmp", path)
        return kind, arg


FREE_AT = [0.0]


def throttle(n):
    """FOLDER/.rate_mb: what all answers together are given, in MB/s."""
    path = os.path.join(ROOT, ".rate_mb")
    if not os.path.exists(path):
        return
    with LOCK:
        FREE_AT[0] = max(FREE_AT[0], time.monotonic()) + n / (float(open(path).read()) * 1e6)
        due = FREE_AT[0]
    time.sleep(max(0, due - time.monotonic()))


def sign(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def signature_fits(handler, path, query):
    """AWS signature version 4, computed here from the request as it came."""
    auth = handler.headers.get("Authorization", "")
    found = re.match(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, *"
                     r"SignedHeaders=([^,]+), *Signature=([0-9a-f]{64})$", auth)
    if not found or found[1] not in KEYS:
        return False
    key_id, day, region, names, given = found.groups()
    date = handler.headers["X-Amz-Date"]
    lines = "".join("%s:%s\n" % (n, " ".join(handler.headers[n].split())) for n in names.split(";"))
    body = handler.headers.get("X-Amz-Content-Sha256", hashlib.sha256(b"").hexdigest())
    canonical = "\n".join([handler.command, path, query, lines, names, body])
    scope = "%s/%s/s3/aws4_request" % (day, region)
    text = "\n".join(["AWS4-HMAC-SHA256", date, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + KEYS[key_id]).encode()
    for part in (day, region, "s3", "aws4_request"):
        key = sign(key, part)
    return hmac.compare_digest(sign(key, text).hex(), given) and "host" in names.split(";")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *args):
        pass

    def say(self, status, body=b"", **lines):
        with LOCK, open(os.path.join(ROOT, ".log"), "a") as f:
            f.write("%d %s %s\n" % (status, self.path, self.headers.get("Range", "-")))
        self.send_response(status)
        for name, value in lines.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        raw, _, query = self.path.partition("?")
        if any(name in self.headers for name in ("Authorization", "X-Amz-Security-Token")):
            with LOCK, open(os.path.join(ROOT, ".keys"), "a") as f:
                f.write("%s %s\n" % (self.headers["Host"], self.path))
        path = urllib.parse.unquote(raw)
        if path.startswith("/loop"):
            return self.say(302, Location=self.path)
        if path.startswith("/moved/"):
            return self.say(302, Location=raw[len("/moved"):])
        if path.startswith("/metadata"):
            return self.say(302, Location="http://169.254.169.254/latest/meta-data")
        if path.startswith("/bucket/") and not signature_fits(self, raw, query):
            return self.say(403, b"<Error><Code>SignatureDoesNotMatch</Code></Error>")
        if path.startswith(("/elsewhere/", "/bucket/elsewhere/")):
            to = open(os.path.join(ROOT, ".elsewhere")).read().strip()
            return self.say(302, Location=to + raw.partition("/elsewhere")[2])
        if path.startswith("/bucket/"):
            path = path[len("/bucket"):]
        full = os.path.join(ROOT, path.lstrip("/"))
        if ".." in path or not os.path.isfile(full):
            return self.say(404)
        delay = os.path.join(ROOT, ".delay_ms")
        if os.path.exists(delay):
            time.sleep(float(open(delay).read()) / 1000)
        self.answer(full)

    def answer(self, full):
        size, stat = os.path.getsize(full), os.stat(full)
        etag = '"%x-%x"' % (size, stat.st_mtime_ns)
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if self.headers.get("If-Match", etag) != etag:
            return self.say(412)
        if not asked:
            return self.say(200, open(full, "rb").read(), ETag=etag)
        first, last = int(asked[1]), min(int(asked[2]), size - 1)
        if first >= size:
            return self.say(416, Content_Range="bytes */%d" % size)
        with open(full, "rb") as f:
            f.seek(first)
            body = f.read(last - first + 1)
        extent = "bytes %d-%d/%d" % (first, last, size)
        script = next_script() if last > first else None
        if not script:
            throttle(len(body))
            return self.say(206, body, Content_Range=extent, ETag=etag)
        getattr(self, "wrong_" + script[0])(script[1], full, first, last, size, body, extent, etag)

    def wrong_whole(self, arg, full, first, last, size, body, extent, etag):
        self.say(200, open(full, "rb").read(), ETag=etag)

    def wrong_wrong(self, arg, full, first, last, size, body, extent, etag):
        self.say(206, body, Content_Range="bytes %d-%d/%d" % (first + 1, last + 1, size + 1), ETag=etag)

    def wrong_norange(self, arg, full, first, last, size, body, extent, etag):
        self.say(206, body, ETag=etag)

    def wrong_long(self, arg, full, first, last, size, body, extent, etag):
        self.say(206, body + b"more", Content_Range=extent, ETag=etag)

    def wrong_short(self, arg, full, first, last, size, body, extent, etag):
        self.say(206, body[:len(body) // 2], Content_Range=extent, ETag=etag)

    def wrong_busy(self, arg, full, first, last, size, body, extent, etag):
        self.say(503, Retry_After=arg or "0")

    def wrong_status(self, arg, full, first, last, size, body, extent, etag):
        self.say(int(arg))

    def wrong_etag(self, arg, full, first, last, size, body, extent, etag):
        self.say(206, body, Content_Range=extent, ETag='"another"')

    def wrong_loop(self, arg, full, first, last, size, body, extent, etag):
        self.say(302, Location="/loop")

    def wrong_reset(self, arg, full, first, last, size, body, extent, etag):
        self.send_response(206)
        self.send_header("Content-Range", extent)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:len(body) // 2])
        self.wfile.flush()
        self.connection.setsockopt(1, 13, b"\1\0\0\0\0\0\0\0")    # SO_LINGER 0: a reset
        self.close_connection = True
        self.connection.close()

    def wrong_slow(self, arg, full, first, last, size, body, extent, etag):
        self.send_response(206)
        self.send_header("Content-Range", extent)
        self.send_header("ETag", etag)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        for i in range(0, len(body), max(1, len(body) // 16)):
            self.wfile.write(body[i:i + max(1, len(body) // 16)])
            self.wfile.flush()
            time.sleep(0.01)


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request, address):
        pass


port = int(sys.argv[3]) if len(sys.argv) > 3 else 0
Server.allow_reuse_address = True
server = Server(("127.0.0.1", port), Handler)
with open(WHERE + ".tmp", "w") as out:
    out.write("http://127.0.0.1:%d" % server.server_address[1])
os.rename(WHERE + ".tmp", WHERE)
server.serve_forever()
