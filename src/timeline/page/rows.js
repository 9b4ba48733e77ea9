/* Rows: a lane's events side by side where they overlap, and a pyramid over each row, so that a frame draws
 * what the screen can show, whatever the number of events.
 *
 * Level 0 of a pyramid is the row, sorted by begin. A group of the level above is four neighbours: least
 * begin, greatest end, class that was busiest, busy time. */

const ROWS_OF_LANE = 8, GROUP = 4, NCLASSES = 12;

/* First fit: the first row that is free when the event begins; where all ROWS_OF_LANE are taken, the last. */
function packLane(t, lane) {
	const rows = [], ends = [], marks = [], counters = new Map();
	for (let i = lane.begin; i < lane.end; i++) {
		const kind = t.kind[i];
		if (kind === KIND.STEP_BEGIN || kind === KIND.STEP_END)
			continue;
		if (kind === KIND.COUNTER) {
			const of = counters.get(t.name[i]);
			if (of)
				of.push(i);
			else
				counters.set(t.name[i], [i]);
			continue;
		}
		if (t.t1[i] === t.t0[i] || kind === KIND.CLOCK) {
			marks.push(i);
			continue;
		}
		let r = 0;
		while (r < ends.length && ends[r] > t.t0[i])
			r++;
		if (r === ROWS_OF_LANE)
			r--;
		if (r === ends.length) {
			ends.push(0);
			rows.push([]);
		}
		ends[r] = Math.max(ends[r], t.t1[i]);
		rows[r].push(i);
	}
	return { rows: rows.map((events) => Uint32Array.from(events)), marks: Uint32Array.from(marks),
		counters: [...counters.values()].map((events) => counterOf(t, events)) };
}

/* Values of one counter in a lane, by time. */
function counterOf(t, events) {
	let low = Infinity, high = -Infinity;
	for (const i of events) {
		low = Math.min(low, t.arg[i]);
		high = Math.max(high, t.arg[i]);
	}
	return { name: nameOf(t, events[0]), events: Uint32Array.from(events), times: Float64Array.from(events, (i) =>
		t.t0[i]), low, high };
}

function levelOf(n) {
	return { n, t0: new Float64Array(n), t1: new Float64Array(n), class: new Uint8Array(n),
		busy: new Float64Array(n) };
}

function busiest(weight, at) {
	let best = 0;
	for (let c = 1; c < NCLASSES; c++)
		if (weight[at + c] > weight[at + best])
			best = c;
	return best;
}

/* base: level 0. */
function pyramid(base) {
	const levels = [base];
	let below = null;
	for (let l = base; l.n > GROUP; l = levels[levels.length - 1]) {
		const n = Math.ceil(l.n / GROUP), up = levelOf(n), weight = new Float32Array(n * NCLASSES);
		for (let g = 0; g < n; g++) {
			const end = Math.min(l.n, GROUP * (g + 1));
			let t1 = -Infinity, busy = 0;
			for (let i = GROUP * g; i < end; i++) {
				t1 = Math.max(t1, l.t1[i]);
				busy += l.busy[i];
				if (!below)
					weight[g * NCLASSES + l.class[i]] += l.busy[i] + 1;
				else
					for (let c = 0; c < NCLASSES; c++)
						weight[g * NCLASSES + c] += below[i * NCLASSES + c];
			}
			up.t0[g] = l.t0[GROUP * g];
			up.t1[g] = t1;
			up.busy[g] = busy;
			up.class[g] = busiest(weight, g * NCLASSES);
		}
		below = weight;
		levels.push(up);
	}
	return levels;
}

function rowOf(t, events) {
	const base = levelOf(events.length);
	for (let k = 0; k < events.length; k++) {
		const i = events[k];
		base.t0[k] = t.t0[i];
		base.t1[k] = t.t1[i];
		base.class[k] = t.class[i];
		base.busy[k] = t.t1[i] - t.t0[i];
	}
	return { events, levels: pyramid(base), latest: latestEnds(base) };
}

/* Greatest end of all up to k: what overlaps a time begins after the first that reaches it. */
function latestEnds(base) {
	const latest = new Float64Array(base.n);
	for (let k = 0, at = -Infinity; k < base.n; k++)
		latest[k] = at = Math.max(at, base.t1[k]);
	return latest;
}

function binRow(t, lane) {
	const n = lane.bin_end - lane.bin_begin, base = levelOf(n);
	for (let k = 0; k < n; k++) {
		const i = lane.bin_begin + k;
		base.t0[k] = t.bins.t0[i];
		base.t1[k] = t.bins.t1[i];
		base.class[k] = t.bins.class[i];
		base.busy[k] = t.bins.busy[i];
	}
	return { events: null, levels: pyramid(base) };
}

function prepareLane(t, lane) {
	const packed = packLane(t, lane);
	lane.rows = packed.rows.map((events) => rowOf(t, events));
	lane.marks = packed.marks;
	lane.counters = packed.counters;
	lane.far = lane.bin_end > lane.bin_begin ? binRow(t, lane) : null;
	lane.shown = lane.rows.length > 0 || lane.marks.length > 0 || lane.counters.length > 0 || lane.far !== null || lane.lost > 0;
}

/* Least k with array[k] >= v (greater than v where `after`). */
function search(array, v, after) {
	let low = 0, high = array.length;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (array[middle] < v || (after && array[middle] === v))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
