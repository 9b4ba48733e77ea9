"""Of bench/reader_peers.sh: makes shards, reads them by each reader in turns, prints the table.
Arguments: the program, a folder, shards, rounds, an address that serves the folder, or "": files."""
import glob, http.client, io, json, os, shutil, statistics, subprocess, sys, tarfile, time

heddle, work, nshards, rounds, at = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
EACH, BATCH = 1024, 64
COUNT = nshards * EACH


def make():
    for s in range(nshards):
        with tarfile.open("%s/web-%03d.tar" % (work, s), "w", format=tarfile.USTAR_FORMAT) as tar:
            for i in range(EACH):
                for name, body in (("raw", bytes(4096) + b"\0\0\x80\x3f" * 3072), ("cls", b"%d" % (i % 4))):
                    info = tarfile.TarInfo("%06d.%s" % (s * EACH + i, name))
                    info.size = len(body)
                    tar.addfile(info, io.BytesIO(body))
    with open(work + "/job.yaml", "w") as f:
        f.write("""job: {name: peers, seed: 3, steps: %d}
model: {use: "builtin:mlp", args: {input: [1, 64, 64], hidden: [4], classes: 4}}
data: {kind: webdataset, path: "%s/web-{000..%03d}.tar", split: {train: 1, valid: 0}}
batch: {global: %d, virtual_nodes: 4}
optim: {kind: momentum, lr: 1e-4, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 100000 steps}
""" % (COUNT // BATCH, at or work, nshards - 1, BATCH))


def by_heddle(*args):
    for name in "run", "kept":
        shutil.rmtree(work + "/" + name, ignore_errors=True)
    subprocess.run([heddle, "run", work + "/job.yaml", "--out", work + "/run", "-q", *args], check=True)
    ms = [json.loads(line).get("step_ms", 0) for line in open(work + "/run/metrics.ndjson")]
    return (len(ms) - len(ms) // 2) * BATCH / (sum(ms[len(ms) // 2:]) / 1000)


class Indexed:
    """Random samples by an index that was made before, as a map-style data set has them."""

    def __init__(self):
        self.at, self.files, self.line = [], {}, None
        for path in sorted(glob.glob(work + "/web-*.tar")):
            with tarfile.open(path) as tar:
                members = [m for m in tar if m.isfile()]
            for raw, cls in zip(members[::2], members[1::2]):
                self.at.append((path, raw.offset_data, raw.size, cls.offset_data))

    def read(self, path, size, offset):
        if not at:
            if path not in self.files:
                self.files[path] = os.open(path, os.O_RDONLY)
            return os.pread(self.files[path], size, offset)
        if not self.line:
            self.line = http.client.HTTPConnection(at[len("http://"):])
        self.line.request("GET", "/" + os.path.basename(path),
                          headers={"Range": "bytes=%d-%d" % (offset, offset + size - 1)})
        return self.line.getresponse().read()

    def __len__(self):
        return len(self.at)

    def __getitem__(self, i):
        import torch
        path, offset, size, label = self.at[i]
        both = bytearray(self.read(path, label + 1 - offset, offset))      # neighbours: one read
        return torch.frombuffer(both, dtype=torch.float32, count=size // 4), int(both[-1:])


def timed(loader):
    since, n, late = 0, 0, 0
    for _, y in loader:
        n += len(y)
        if since:
            late += len(y)
        elif n >= COUNT // 2:
            since = time.monotonic()
    return late / (time.monotonic() - since)


def by_dataloader(workers):
    import torch.utils.data
    return timed(torch.utils.data.DataLoader(Indexed(), batch_size=BATCH, shuffle=True,
                                             num_workers=workers))


def by_webdataset(workers):
    import torch, torch.utils.data, webdataset
    number = lambda b: torch.frombuffer(bytearray(b), dtype=torch.float32)
    paths = sorted(glob.glob(work + "/web-*.tar"))
    if at:
        paths = ["pipe:curl -s %s/%s" % (at, os.path.basename(path)) for path in paths]
    data = webdataset.WebDataset(paths, shardshuffle=False, empty_check=False)
    data = data.shuffle(1000).to_tuple("raw", "cls").map_tuple(number, int)
    return timed(torch.utils.data.DataLoader(data, batch_size=BATCH, num_workers=workers))


if not os.path.exists(work + "/job.yaml") or at:
    make()
readers = [("heddle", by_heddle)]
if at:
    readers += [("cached heddle", lambda: by_heddle("-s", "data.cache=" + work + "/kept"))]
for n in (0, 4, 8, 16) if at else (0, 1, 2, 4, 8):
    readers += [("dataloader %d" % n, lambda n=n: by_dataloader(n)),
                ("webdataset %d" % n, lambda n=n: by_webdataset(n))]
got = {name: [] for name, _ in readers}
whole = {name: [] for name, _ in readers}
for _ in range(rounds):
    for name, read in readers:
        since = time.monotonic()
        try:
            got[name].append(read())
            whole[name].append(time.monotonic() - since)
        except ImportError:
            got[name].append(None)
print("%-17s %12s %8s %12s %12s %8s" % ("reader", "samples_s", "ratio", "least", "most", "whole_s"))
own = statistics.median(got["heddle"])
middle = lambda name: -1 if None in got[name] else statistics.median(got[name])
for name, _ in sorted(readers, key=lambda r: -middle(r[0])):
    values = got[name]
    if None in values:
        print("%-17s %12s %8s %12s %12s %8s" % ((name,) + ("-",) * 5))
        continue
    median = statistics.median(values)
    print("%-17s %12.0f %8.2f %12.0f %12.0f %8.1f" % (name, median, own / median, min(values), max(values),
          statistics.median(whole[name])))
