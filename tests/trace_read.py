"""What recordings say, read by nothing that wrote them: prints one JSON object per event, or checks.

	trace_read.py events FILE...        every event of flight files (.hdfr) and traces (.hdt)
	trace_read.py check FILE...         laws of one recording and of all; a line of what was seen
	trace_read.py offset NS FILE...     NS lies within what the probes say of each process's clock, times
	                                    1 + the number of its file, and 0 does not
"""
import json
import struct
import sys
from collections import defaultdict

KINDS = {1: "step_begin", 2: "step_end", 3: "op", 4: "send", 5: "recv", 6: "read", 7: "wait", 8: "counter",
         9: "epoch", 10: "clock", 11: "mark", 12: "lost"}
LANES = {1: "device", 2: "reader", 3: "transfer", 4: "control"}


def text_of(names, number):
    return names[number:names.index(b"\0", number)].decode() if number < len(names) else "?"


def header_of(data):
    if data[:8] != b"HDFLIGHT":
        raise ValueError("no flight file")
    state, worker, pid, _, nrings = struct.unpack_from("<I", data, 12) + struct.unpack_from("<4I", data, 48)
    start, = struct.unpack_from("<Q", data, 80)
    lanes = []
    for i in range(nrings):
        at, slots, kind, index = struct.unpack_from("<QIHH", data, 1024 + 48 * i)
        name = data[1024 + 48 * i + 16:1024 + 48 * i + 48].split(b"\0")[0].decode()
        lanes.append({"at": at, "slots": slots, "kind": LANES.get(kind, kind), "index": index, "name": name})
    return {"state": state, "worker": worker, "pid": pid, "start": start, "lanes": lanes}


def flight(data):
    head = header_of(data)
    used, names_at = struct.unpack_from("<I", data, 140)[0], struct.unpack_from("<Q", data, 144)[0]
    rings = []
    for lane in head["lanes"]:
        count, = struct.unpack_from("<Q", data, lane["at"])
        first = max(0, count + 2 - lane["slots"])
        rings.append([(i, data[lane["at"] + 64 + 32 * (i % lane["slots"]):][:32]) for i in
                      range(first, count)])
    return head, data[names_at:names_at + used], rings


def trace(data):
    head, names, rings, at, lost = None, bytearray(), [], 8, 0
    while at + 32 <= len(data):
        kind, flags, stored, _, _ = struct.unpack_from("<IIQQQ", data, at)
        body = data[at + 32:at + 32 + stored]
        if len(body) < stored:
            break
        assert flags == 0
        at += 32 + stored
        if kind == 7:
            head = header_of(body[8:])
            rings = rings or [[] for _ in head["lanes"]]
        elif kind == 2:
            offset, = struct.unpack_from("<I", body, 4)
            names[offset:] = body[8:]
        elif kind == 3:
            ring, = struct.unpack_from("<I", body, 4)
            first, missed = struct.unpack_from("<QQ", body, 8)
            assert not rings[ring] or first > rings[ring][-1][0], "slots of a ring come twice"
            rings[ring] += [(first + i, body[24 + 32 * i:56 + 32 * i]) for i in
                            range((len(body) - 24) // 32)]
            lost = max(lost, missed)
    head["lost"] = lost
    return head, bytes(names), rings


def events_of(path):
    data = open(path, "rb").read()
    head, names, rings = (trace if data[:8] == b"HDTRACE1" else flight)(data)
    out = []
    for lane, ring in zip(head["lanes"], rings):
        for at, (index, slot) in enumerate(ring):
            if slot[15] == 255:
                continue
            t0, = struct.unpack_from("<Q", slot)
            took = int.from_bytes(slot[8:14], "little")
            name, instr, arg = struct.unpack_from("<IIQ", slot, 16)
            event = {"lane": lane["name"], "kind": KINDS.get(slot[15], slot[15]), "t0": t0, "t1": t0 + took,
                     "name": text_of(names, name), "instr": instr, "arg": arg, "flags": slot[14],
                     "slot": index}
            if slot[14] & 1 and at + 1 < len(ring):
                ext = ring[at + 1][1]
                if event["kind"] == "clock":
                    event["between"], event["peer"] = struct.unpack_from("<QI", ext)
                else:
                    event["gate"], event["first"], _, event["peer"] = struct.unpack_from("<IIIH", ext)
                    event["flow"], event["chunks"], event["preempted"], event["class"] = \
                        struct.unpack_from("<QIHH", ext, 16)
            out.append(event)
    return head, out


def nested(events):
    """Intervals of one device are disjoint or one lies in the other."""
    ends = []
    for e in sorted((e for e in events if e["t1"] > e["t0"]), key=lambda e: (e["t0"], -e["t1"])):
        while ends and ends[-1] <= e["t0"]:
            ends.pop()
        assert not ends or e["t1"] <= ends[-1], f"{e} reaches beyond the one around it"
        ends.append(e["t1"])


def check(paths):
    sends, recvs, clocks, offsets = {}, {}, defaultdict(list), {}
    seen = defaultdict(int)
    for path in paths:
        head, events = events_of(path)
        for lane in head["lanes"]:
            if lane["kind"] == "device":
                nested([e for e in events if e["lane"] == lane["name"]])
        for e in events:
            seen[e["kind"]] += 1
            assert e["kind"] in KINDS.values() and e["name"] != "", e
            if e["kind"] in ("send", "recv"):
                to = sends if e["kind"] == "send" else recvs
                to.setdefault((e["flow"]), []).append((head["worker"], e))
            if e["kind"] == "clock":
                assert e["t1"] - e["t0"] >= e["between"], e
                clocks[head["worker"]].append(e)
    for worker, probes in clocks.items():
        low = max(p["arg"] + p["between"] - p["t1"] for p in probes)
        high = min(p["arg"] - p["t0"] for p in probes)
        offsets[worker] = (low, high)
    paired = 0
    for flow, came in recvs.items():
        for (at, r), (by, s) in zip(came, sends.get(flow, [])):
            assert (r["peer"], s["peer"], r["instr"], r["arg"]) == (by, at, s["instr"], s["arg"]), (s, r)
            paired += 1
    alone = sum(1 for flow in recvs if flow not in sends)
    print(json.dumps({"seen": seen, "paired": paired, "alone": alone, "offsets": offsets}))


def offset(ns, paths):
    judged = 0
    for path in paths:
        events = events_of(path)[1]
        probes = [e for e in events if e["kind"] == "clock"]
        number = path.split("/")[-1].split(".")[0]
        truth = 0 if number == "coordinator" else -ns * (1 + int(number))
        # a worker in the place of a killed one may come as the run ends: it took no part, and has no probes
        if truth and not any(e["kind"] == "step_begin" for e in events):
            continue
        judged += 1
        low = max((p["arg"] + p["between"] - p["t1"] for p in probes), default=0)
        high = min((p["arg"] - p["t0"] for p in probes), default=0)
        assert low <= truth <= high, f"{path}: {truth} is not in [{low}, {high}] of {len(probes)} probes"
        assert not truth or not low <= 0 <= high, f"{path}: [{low}, {high}] says nothing"
    print("offset", judged)


if __name__ == "__main__":
    if sys.argv[1] == "offset":
        offset(int(sys.argv[2]), sys.argv[3:])
    elif sys.argv[1] == "events":
        for path in sys.argv[2:]:
            head, events = events_of(path)
            print(json.dumps({k: v for k, v in head.items() if k != "lanes"} | {"file": path}))
            for e in events:
                print(json.dumps(e))
    else:
        check(sys.argv[2:])
