"""What other programs read of an exported recording; one line each: reader, what it was asked, its answer."""
import collections
import glob
import json
import os
import sys
import warnings

warnings.filterwarnings("ignore")
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"


def perfetto(path):
    """The schema that Perfetto publishes: slices paired, names interned, every flow with both ends."""
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

    trace = Trace()
    trace.ParseFromString(open(path, "rb").read())
    names, open_, clock = {}, collections.defaultdict(list), {}
    flows = collections.defaultdict(lambda: [0, 0])
    begun = instants = 0
    for packet in trace.packet:
        sequence = packet.trusted_packet_sequence_id
        if packet.sequence_flags & 1:
            names[sequence] = set()
        for c in packet.clock_snapshot.clocks:
            if c.is_incremental:
                clock[sequence] = c.timestamp
        names[sequence] |= {n.iid for n in packet.interned_data.event_names}
        if packet.HasField("timestamp"):
            clock[sequence] += packet.timestamp
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        if event.type == 1:
            assert event.name_iid in names[sequence], "a name that is not interned"
            open_[sequence].append(clock[sequence])
            begun += 1
            for flow in event.flow_ids:
                flows[flow][0] += 1
            for flow in event.terminating_flow_ids:
                flows[flow][1] += 1
        elif event.type == 2:
            assert open_[sequence].pop() <= clock[sequence], "an end before its begin"
        instants += event.type == 3
    assert not any(open_.values()), "a slice without an end"
    paired = sum(1 for ends in flows.values() if ends == [1, 1])
    size = os.path.getsize(path)
    return "%d slices, %d instants, %d of %d flows paired, %.1f bytes an event" % (
        begun, instants, paired, len(flows), size / (begun + instants))


def chrome(path):
    """JSON of Python: slices of one thread are disjoint or nested."""
    trace = json.load(open(path))
    slices = collections.defaultdict(list)
    for e in trace["traceEvents"]:
        if e["ph"] == "X":
            slices[e["pid"], e["tid"]].append((round(e["ts"] * 1000), round((e["ts"] + e["dur"]) * 1000)))
    for line in slices.values():
        ends = []
        for t0, t1 in sorted(line, key=lambda s: (s[0], -s[1])):
            while ends and ends[-1] <= t0:
                ends.pop()
            assert not ends or t1 <= ends[-1], "slices that overlap"
            ends.append(t1)
    return "%d events, %d slices on %d lines, all nested" % (
        len(trace["traceEvents"]), sum(map(len, slices.values())), len(slices))


def hta(folder):
    """HolisticTraceAnalysis: overlap of communication and computation."""
    import contextlib
    import io
    import logging

    logging.disable(logging.CRITICAL)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        from hta.trace_analysis import TraceAnalysis

        analysis = TraceAnalysis(trace_dir=os.path.abspath(folder))
        overlap = analysis.get_comm_comp_overlap(visualize=False)
        idle = analysis.get_temporal_breakdown(visualize=False)
    return "%d ranks, overlap %s %%, compute %s %%" % (
        len(overlap), ", ".join("%.1f" % x for x in overlap["comp_comm_overlap_pctg"]),
        ", ".join("%.1f" % x for x in idle["compute_time_pctg"]))


def tensorboard(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(folder)
    events.Reload()
    lines = [json.loads(line) for line in open(os.path.join(folder, "metrics.ndjson"))]
    loss = {s.step: s.value for s in events.Scalars("loss")}
    worst = max(abs(loss[line["step"]] - line["loss"]) / abs(line["loss"]) for line in lines)
    return "%d of %d steps, loss within %.1g of metrics.ndjson" % (len(loss), len(lines), worst)


READERS = {".pftrace": perfetto, ".json": chrome, ".hta": hta}

for path in sys.argv[1:]:
    read = READERS.get(os.path.splitext(path)[1], tensorboard)
    try:
        said = read(path)
    except ImportError as error:
        said = "not installed: %s" % error.name
    print("| %s | %s |" % (read.__name__, said))
