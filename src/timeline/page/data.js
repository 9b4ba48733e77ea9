/* Columns and tables of the page as typed arrays: src/timeline/viewer.h says what stands where. */

const ARRAYS = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, f64: Float64Array };
const KIND = { STEP_BEGIN: 1, STEP_END: 2, OP: 3, SEND: 4, RECV: 5, READ: 6, WAIT: 7, COUNTER: 8, EPOCH: 9,
	CLOCK: 10, MARK: 11, LOST: 12 };
const LANE = { DEVICE: 1, READER: 2, TRANSFER: 3, CONTROL: 4 };
const CLASS_OF_WAIT = 8;

function bytesOf(text) {
	if (Uint8Array.fromBase64)
		return Uint8Array.fromBase64(text);
	const letters = atob(text), bytes = new Uint8Array(letters.length);
	for (let i = 0; i < letters.length; i++)
		bytes[i] = letters.charCodeAt(i);
	return bytes;
}

function columnOf(c, text) {
	if (c.type === 'one') {
		const small = c.value >= 0 && c.value <= 255;
		const all = new (small ? Uint8Array : Float64Array)(c.n);
		return c.value ? all.fill(c.value) : all;
	}
	const bytes = bytesOf(text.substr(c.at, c.len));
	return new ARRAYS[c.type](bytes.buffer, bytes.byteOffset, c.n);
}

/* Steps of one number, over all processes. */
function mergeSteps(rows) {
	const by = new Map();
	for (const [process, number, begin, end, committed] of rows) {
		const s = by.get(number);
		if (!s) {
			by.set(number, { number, begin, end, committed: !!committed });
		} else {
			s.begin = Math.min(s.begin, begin);
			s.end = Math.max(s.end, end);
			s.committed = s.committed || !!committed;
		}
	}
	return [...by.values()].sort((a, b) => a.number - b.number);
}

function readTimes(t, lanes, since, length) {
	for (const l of lanes)
		for (let i = l.begin, at = l.t0; i < l.end; i++) {
			at += since[i];
			t.t0[i] = at;
			t.t1[i] = at + length[i];
			t.lane[i] = l.index;
		}
}

/* Of transfer k: which event; of an event: which transfer, or -1. */
function readTransfers(t, place) {
	t.transfer = new Int32Array(t.n).fill(-1);
	for (let k = 0, at = 0; k < place.length; k++) {
		at += place[k];
		t.transfer[at] = k;
	}
}

function readBins(t, bin) {
	const n = bin.since.length;
	t.bins = { t0: new Float64Array(n), t1: new Float64Array(n), class: bin.class, busy: bin.busy,
		count: bin.count };
	for (const l of t.lanes)
		for (let i = l.bin_begin, at = l.bin_t0; i < l.bin_end; i++) {
			at += bin.since[i];
			t.bins.t0[i] = at;
			t.bins.t1[i] = at + bin.length[i];
		}
}

function readTimeline(head, index, text) {
	const of = { event: {}, transfer: {}, bin: {}, path: {} };
	for (const c of head.columns)
		of[c.of][c.name] = columnOf(c, text);
	const n = of.event.since.length;
	const t = Object.assign({}, head, of.event, { index, n, x: of.transfer, t0: new Float64Array(n),
		t1: new Float64Array(n), lane: new Uint32Array(n), shift: head.begin });
	t.lanes.forEach((l, i) => { l.index = i; });
	readTimes(t, t.lanes, of.event.since, of.event.length);
	readTransfers(t, of.transfer.place);
	readBins(t, of.bin);
	readPaths(t, of.path);
	t.bySteps = mergeSteps(head.steps);
	t.step_now = Math.max(0, t.bySteps.findIndex((s) => s.committed && (t.all || s.number >= t.step_from)));
	const kept = t.bySteps.filter((s) => s.number >= t.step_from && s.number <= t.step_to);
	/* no Math.min(...): a call takes some hundred thousand arguments at most */
	t.keptFrom = t.all ? -Infinity : kept.reduce((least, s) => Math.min(least, s.begin), Infinity);
	t.keptTo = t.all ? Infinity : kept.reduce((most, s) => Math.max(most, s.end), -Infinity);
	return t;
}
