/* What stands below what: a line for each timeline where there are two, for each process, for each lane. */

const HEIGHT = { steps: 19, timeline: 20, process: 21, first: 19, next: 13, counter: 24, gap: 3 };

function lanesOf(t, p) { return t.lanes.filter((l) => l.process === p && l.shown); }

/* Places on a canvas that is as long as need be; S.top is how far it is scrolled. */
function layOut() {
	let y = 0;
	S.lines = [];
	const put = (line, h) => { S.lines.push(Object.assign(line, { y, h })); y += h; };
	for (const t of S.timelines) {
		if (S.timelines.length > 1)
			put({ what: 'timeline', t }, HEIGHT.timeline);
		t.processes.forEach((process, p) => {
			const lanes = lanesOf(t, p);
			process.nlanes = lanes.length;
			if (!lanes.length)
				return;
			put({ what: 'process', t, process }, HEIGHT.process);
			for (const lane of process.folded ? [] : lanes)
				put({ what: 'lane', t, lane, process }, HEIGHT.gap + HEIGHT.first + rowsBelow(lane) +
					HEIGHT.counter * lane.counters.length);
		});
	}
	S.tall = y;
}

/* Of the rows below the first. */
function rowsBelow(lane) { return HEIGHT.next * Math.max(0, lane.rows.length - 1); }

/* Where counter k of a lane is, on the canvas. */
function counterPlace(line, k) {
	const y = line.y - S.top + S.axis + 1 + HEIGHT.first + rowsBelow(line.lane) + HEIGHT.counter * k;
	return { y, h: HEIGHT.counter - 3 };
}

/* Of which counter of its lane an event is; -1: of none. */
function counterIn(lane, i) { return lane.counters.findIndex((c) => holds(c.events, i)); }

/* The y of a value between a counter's least and greatest. */
function counterAt(c, place, value) {
	return place.y + place.h - 1 - (c.high > c.low ? (value - c.low) / (c.high - c.low) : 0) * (place.h - 2);
}

/* Where row r of a lane is, on the canvas. */
function rowPlace(line, r) {
	const y = line.y - S.top + S.axis + 1;
	return r === 0 ? { y, h: HEIGHT.first - 1 } : { y: y + HEIGHT.first + HEIGHT.next * (r - 1), h: HEIGHT.next - 1 };
}

function rowIn(lane, i) { return lane.rows.findIndex((row) => holds(row.events, i)); }

function holds(events, i) {
	const k = search(events, i);
	return k < events.length && events[k] === i;
}

function lineOf(t, i) { return S.lines.find((l) => l.what === 'lane' && l.t === t && l.lane.index === t.lane[i]); }

/* Rectangle of an event on the canvas; null: its process is folded. */
function placeOf(t, i) {
	const line = lineOf(t, i);
	if (!line)
		return null;
	const c = counterIn(line.lane, i);
	const place = c >= 0 ? counterPlace(line, c) : rowPlace(line, Math.max(0, rowIn(line.lane, i)));
	return { x0: S.left + (t.t0[i] - t.shift - S.a) * S.scale, x1: S.left + (t.t1[i] - t.shift - S.a) * S.scale,
		y: place.y, h: place.h };
}

/* ---- what is below the pointer ---- */

function lineAt(y) {
	const at = y - S.axis + S.top;
	return y < S.axis ? undefined : S.lines.find((l) => at >= l.y && at < l.y + l.h);
}

function inRow(row, t, from, to) {
	const base = row.levels[0];
	for (let k = search(base.t0, to, true) - 1; k >= 0 && row.latest[k] >= from; k--)
		if (base.t1[k] >= from)
			return row.events[k];
	return -1;
}

/* {t, i}, or null. `slack`: pixels. */
function eventAt(x, y, slack) {
	const line = lineAt(y);
	if (!line || line.what !== 'lane' || x < S.left)
		return null;
	const { t, lane } = line, near = slack / S.scale, at = S.a + (x - S.left) / S.scale + t.shift;
	const below = y - S.axis + S.top - line.y - 1 - HEIGHT.first;
	if (below >= rowsBelow(lane) && lane.counters.length) {
		const c = lane.counters[Math.min(lane.counters.length - 1, Math.floor((below - rowsBelow(lane)) / HEIGHT.counter))];
		const k = search(c.times, at + near, true) - 1;
		return k < 0 ? null : { t, i: c.events[k] };
	}
	const r = below < 0 ? 0 : 1 + Math.floor(below / HEIGHT.next);
	if (r === 0) {
		const times = marksTimes(t, lane.marks), k = search(times, at - 4 / S.scale);
		if (k < times.length && times[k] <= at + 4 / S.scale)
			return { t, i: lane.marks[k] };
	}
	if (!lane.rows[r])
		return null;
	let i = inRow(lane.rows[r], t, at, at);
	if (i < 0)
		i = inRow(lane.rows[r], t, at - near, at + near);
	return i < 0 ? null : { t, i };
}

/* The next event of the same row, to the left or right. */
function neighbour(t, i, by) {
	const lane = t.lanes[t.lane[i]], r = rowIn(lane, i), c = counterIn(lane, i);
	const events = r >= 0 ? lane.rows[r].events : c >= 0 ? lane.counters[c].events : lane.marks;
	const k = search(events, i) + by;
	return k >= 0 && k < events.length ? events[k] : -1;
}

/* An event of the next row above or below that has one, nearest in time. */
function acrossRows(t, i, by) {
	const all = [];
	for (const line of S.lines)
		if (line.what === 'lane')
			for (const row of line.lane.rows)
				all.push({ t: line.t, row });
	const now = all.findIndex((r) => r.t === t && holds(r.row.events, i));
	const to = all[(now < 0 ? 0 : now + by)];
	if (!to || !to.row.events.length)
		return null;
	const base = to.row.levels[0], at = t.t0[i] - t.shift + to.t.shift;
	const k = Math.min(base.n - 1, Math.max(0, search(base.t0, at, true) - 1));
	return { t: to.t, i: to.row.events[k] };
}
