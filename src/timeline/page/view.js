/* A frame: axis, lines, what is chosen on top. Whatever changes asks for one; at most one is drawn in the
 * time of a refresh. */

const AXIS = 24;
let asked = false;

function redraw() {
	if (asked)
		return;
	asked = true;
	requestAnimationFrame(() => { asked = false; frame(); });
}

function fitCanvas() {
	const canvas = byId('canvas'), box = canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
	S.width = Math.max(60, Math.floor(box.width));
	S.height = Math.max(40, Math.floor(box.height));
	S.left = S.width < 600 ? 74 : 190;
	S.axis = AXIS + HEIGHT.steps * S.timelines.length;
	if (canvas.width !== Math.round(S.width * ratio) || canvas.height !== Math.round(S.height * ratio)) {
		canvas.width = Math.round(S.width * ratio);
		canvas.height = Math.round(S.height * ratio);
	}
	S.g.setTransform(ratio, 0, 0, ratio, 0, 0);
	S.scale = (S.width - S.left) / (S.b - S.a);
	S.top = Math.max(0, Math.min(S.top, S.tall - (S.height - S.axis)));
}

function xOf(t, time) { return S.left + (time - t.shift - S.a) * S.scale; }

function cut(g, text, room) {
	if (textWidth(g, text) <= room)
		return text;
	let n = text.length;
	while (n > 1 && textWidth(g, text.slice(0, n) + '\u2026') > room)
		n--;
	return text.slice(0, n) + '\u2026';
}

function put(g, text, x, y, colour, align, font) {
	g.fillStyle = colour;
	g.font = font || '11px system-ui, sans-serif';
	g.textAlign = align || 'left';
	g.textBaseline = 'middle';
	g.fillText(text, x, y);
}

function drawAxis(g) {
	g.fillStyle = S.look.card;
	g.fillRect(0, 0, S.width, S.axis);
	g.fillStyle = S.look.rule;
	for (const mark of S.ticks) {
		const x = Math.round(S.left + (mark.at - S.a) * S.scale);
		g.fillStyle = S.look.rule;
		g.fillRect(x, AXIS - 5, 1, 5);
		g.font = '11px system-ui, sans-serif';
		if (x + textWidth(g, mark.text) / 2 < S.width && x - textWidth(g, mark.text) / 2 > S.left - 20)
			put(g, mark.text, x, AXIS / 2 - 1, S.look.soft, 'center');
	}
	put(g, sayTime(S.b - S.a, 3) + (S.width < 600 ? '' : ' in view'), 6, AXIS / 2 - 1, S.look.soft);
	S.timelines.forEach((t, k) => drawSteps(g, t, AXIS + k * HEIGHT.steps));
	g.fillStyle = S.look.rule;
	g.fillRect(0, S.axis - 1, S.width, 1);
}

/* Behind the boxes of a lane. */
function drawGrid(g, y, h) {
	g.fillStyle = S.look.rule;
	for (const mark of S.ticks)
		g.fillRect(Math.round(S.left + (mark.at - S.a) * S.scale), y, 1, h);
}

/* Steps as bands, the chosen one marked; those narrower than two pixels are one grey line. */
function drawSteps(g, t, y) {
	const h = HEIGHT.steps;
	let last = -Infinity;
	t.bySteps.forEach((s, k) => {
		const x0 = Math.max(S.left, xOf(t, s.begin)), x1 = Math.min(S.width, xOf(t, s.end));
		if (x1 <= S.left || x0 >= S.width || x1 < last + 2)
			return;
		last = x1;
		const now = k === t.step_now;
		g.fillStyle = now ? S.look.accent : S.look.rule;
		g.globalAlpha = now ? 0.35 : k % 2 ? 0.9 : 0.5;
		g.fillRect(x0, y + 1, Math.max(1, x1 - x0 - 1), h - 4);
		g.globalAlpha = 1;
		g.font = '11px system-ui, sans-serif';
		const text = x1 - x0 > 70 ? 'step ' + s.number : String(s.number);
		if (textWidth(g, text) < x1 - x0 - 6)
			put(g, text + (s.committed ? '' : ' dropped'), x0 + 4, y + h / 2 - 0.5, S.look.ink);
	});
	g.fillStyle = S.look.card;
	g.fillRect(0, y, S.left, h);
	g.font = '11px system-ui, sans-serif';
	put(g, cut(g, S.timelines.length > 1 ? t.title : 'steps', S.left - 12), 6, y + h / 2 - 0.5, S.look.soft);
}

function drawTitle(g, line, y) {
	g.fillStyle = S.look.rule;
	g.fillRect(0, y, S.width, line.h);
	put(g, cut(g, line.t.title, S.width - S.left - 8), S.left + 4, y + line.h / 2, S.look.ink, 'left',
		'600 12px system-ui, sans-serif');
	return '';
}

function drawProcess(g, line, y) {
	const p = line.process, text = (p.host ? p.host + ', ' : '') + 'clock ' + sayError(p) +
		(p.state === 2 ? ', ended by a signal' : '');
	g.fillStyle = S.look.card;
	g.fillRect(0, y, S.width, line.h);
	g.fillStyle = S.look.rule;
	g.fillRect(0, y, S.width, 1);
	g.font = '11px system-ui, sans-serif';
	put(g, cut(g, text, S.width - S.left - 8), S.left + 4, y + line.h / 2 + 0.5, p.aligned ? S.look.soft :
		S.look.bad);
	return (p.folded ? '\u25b8 ' : '\u25be ') + p.name;
}

function labelOf(t, row) {
	return (k) => {
		const i = row.events[k], number = numberOf(t, i), name = nameOf(t, i);
		return number ? [name + ' ' + number, number] : [name];
	};
}

/* Until its first byte a transfer waits for the gate, the queue or the sender. */
function splitOf(t, row) {
	return (k) => {
		const i = row.events[k], x = t.transfer[i];
		return x < 0 ? -Infinity : t.t0[i] + Math.max(t.x.first[x], t.x.gate[x]);
	};
}

function drawFar(pen, line, a, place) {
	const t = line.t, x0 = Math.min(S.width, Math.max(S.left, xOf(t, t.keptFrom)));
	const x1 = Math.min(S.width, Math.max(S.left, xOf(t, t.keptTo)));
	for (const [left, right] of t.keptFrom > t.keptTo ? [[S.left, S.width]] : [[S.left, x0], [x1, S.width]]) {
		if (right - left < 1)
			continue;
		pen.open(place.y, place.h, left, right, S.critical);
		drawLevels(pen, line.lane.far.levels, a, S.scale, null, null);
	}
}

/* A line from value to value, two points for a column of pixels at most. Before the first there is none. */
function drawCounter(g, line, k, a) {
	const c = line.lane.counters[k], place = counterPlace(line, k);
	if (place.y > S.height || place.y + place.h < S.axis)
		return;
	g.strokeStyle = S.look.accent;
	g.lineWidth = 1.5;
	g.beginPath();
	let last = -1;
	for (let x = S.left; x < S.width; x++) {
		const at = search(c.times, a + (x + 1) / S.scale) - 1;
		if (at < 0)
			continue;
		const y = counterAt(c, place, line.t.arg[c.events[at]]);
		if (last < 0)
			g.moveTo(x, y);
		else if (at !== last)
			g.lineTo(x, counterAt(c, place, line.t.arg[c.events[last]]));
		g.lineTo(x + 1, y);
		last = at;
	}
	g.stroke();
	g.font = '10px system-ui, sans-serif';
	put(g, cut(g, c.name + ', ' + sayValue(c.name, c.low) + ' to ' + sayValue(c.name, c.high), S.width - S.left - 8),
		S.left + 4, place.y + 6, S.look.soft, 'left', '10px system-ui, sans-serif');
	S.stats.counters.push([c.name, place.y, place.h, c.low, c.high, line.t.index, line.lane.index]);
}

function drawLane(g, pen, line, y) {
	const { t, lane } = line, a = S.a + t.shift - S.left / S.scale;
	g.fillStyle = S.look.lane;
	g.fillRect(S.left, y + 1, S.width - S.left, line.h - HEIGHT.gap);
	drawGrid(g, y + 1, line.h - HEIGHT.gap);
	if (lane.far)
		drawFar(pen, line, a, rowPlace(line, 0));
	lane.rows.forEach((row, r) => {
		const place = rowPlace(line, r);
		if (place.y > S.height || place.y + place.h < S.axis)
			return;
		pen.open(place.y, place.h, S.left, S.width, S.critical);
		S.stats.rows++;
		drawLevels(pen, row.levels, a, S.scale, labelOf(t, row), splitOf(t, row));
	});
	pen.open(y + 1, HEIGHT.first, S.left, S.width, S.critical);
	drawMarks(pen, t, lane.marks, a, S.scale);
	lane.counters.forEach((c, k) => drawCounter(g, line, k, a));
	return lane.name + (lane.lost ? ' \u2212' + lane.lost : '');
}

function drawLines(g, pen) {
	const labels = [];
	for (const line of S.lines) {
		const y = line.y - S.top + S.axis;
		if (y > S.height || y + line.h < S.axis)
			continue;
		const text = line.what === 'timeline' ? drawTitle(g, line, y) : line.what === 'process' ?
			drawProcess(g, line, y) : drawLane(g, pen, line, y);
		labels.push({ text, y, line });
	}
	return labels;
}

function drawNames(g, labels) {
	for (const { text, y, line } of labels) {
		const lane = line.what === 'lane', h = lane ? HEIGHT.first + 2 : line.h;
		g.fillStyle = lane ? S.look.paper : line.what === 'timeline' ? S.look.rule : S.look.card;
		g.fillRect(0, y + (lane ? 0 : 1), S.left, line.h - (lane ? 0 : 1));
		const indent = lane ? S.width < 600 ? 6 : 18 : 6;
		const font = (line.what === 'process' ? '600 ' : '') + (S.width < 600 ? 10 : 12) + 'px system-ui, sans-serif';
		g.font = font;
		put(g, cut(g, text, S.left - indent - 4), indent, y + h / 2 + 0.5, lane && line.lane.lost ? S.look.bad :
			S.look.ink, 'left', font);
	}
	g.fillStyle = S.look.rule;
	g.fillRect(S.left - 1, S.axis, 1, S.height);
}

/* ---- on top ---- */

function drawArrow(g, t, s, r, strong) {
	const from = placeOf(t, s), to = placeOf(t, r);
	if (!from || !to)
		return;
	const k = t.transfer[s], x0 = Math.max(from.x0, xOf(t, t.t0[s] + (k >= 0 ? t.x.first[k] : 0)));
	const x1 = to.x1, y0 = from.y + from.h / 2, y1 = to.y + to.h / 2;
	if (Math.max(x0, x1) < S.left || Math.min(x0, x1) > S.width)
		return;
	const bend = Math.max(12, Math.abs(x1 - x0) / 2), back = t.t1[r] < t.t0[s];
	g.strokeStyle = g.fillStyle = back ? S.look.bad : strong ? S.look.ink : S.look.soft;
	g.lineWidth = strong ? 2 : 1;
	g.setLineDash(back ? [4, 3] : []);
	g.beginPath();
	g.moveTo(x0, y0);
	g.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - 5, y1);
	g.stroke();
	g.setLineDash([]);
	g.beginPath();
	g.moveTo(x1, y1);
	g.lineTo(x1 - 7, y1 - 4);
	g.lineTo(x1 - 7, y1 + 4);
	g.fill();
	S.stats.arrows++;
}

/* Ends of transfers in view, each pair once; null: more than can be told apart. */
function pairsInView() {
	const most = 400, pairs = [];
	for (const line of S.lines) {
		if (line.what !== 'lane')
			continue;
		const t = line.t;
		for (const row of line.lane.rows) {
			const base = row.levels[0], end = search(base.t0, S.b + t.shift, true);
			for (let k = search(row.latest, S.a + t.shift); k < end; k++) {
				const i = row.events[k], x = t.transfer[i];
				if (x < 0 || !t.x.other[x] || (t.kind[i] === KIND.RECV && seenAt(t, t.x.other[x] - 1)))
					continue;
				if (pairs.length >= most)
					return null;
				const other = t.x.other[x] - 1;
				pairs.push(t.kind[i] === KIND.SEND ? [t, i, other] : [t, other, i]);
			}
		}
	}
	return pairs;
}

function seenAt(t, i) { return t.t1[i] - t.shift >= S.a && t.t0[i] - t.shift <= S.b && lineOf(t, i) !== undefined; }

function drawFlows(g) {
	const pairs = pairsInView();
	if (!pairs)
		put(g, 'more than 400 arrows here: zoom in', S.width - 12, S.axis + 10, S.look.bad, 'right');
	for (const [t, s, r] of pairs || [])
		drawArrow(g, t, s, r, false);
}

function outline(g, place, colour, width) {
	const x0 = Math.max(S.left, place.x0), x1 = Math.max(x0 + 2, Math.min(S.width, place.x1));
	if (place.x1 < S.left || place.x0 > S.width)
		return;
	g.strokeStyle = colour;
	g.lineWidth = width;
	g.strokeRect(x0 - 0.5, place.y - 0.5, x1 - x0 + 1, place.h + 1);
}

/* Segments as boxes, what joins those of two lanes as lines; of those in one column of pixels, one. */
function drawPath(g, pen, t) {
	const from = S.a + t.shift, to = S.b + t.shift;
	let last = null, column = -1;
	for (const s of criticalOf(t)) {
		const place = s.to < from || s.from > to ? null : placeOfSegment(t, s);
		const x0 = xOf(t, s.from), x1 = xOf(t, s.to);
		if (!place || (x1 - x0 < 1 && Math.floor(x0) === column))
			continue;
		column = Math.floor(x0);
		if (s.i >= 0) {
			pen.open(place.y, place.h, S.left, S.width, false);
			pen.big(x0, Math.max(x1, x0 + 1), t.class[s.i], 1);
			pen.close();
		}
		outline(g, { x0, x1, y: place.y, h: place.h }, S.look.path, 1.5);
		const y = place.y + place.h / 2;
		if (last !== null && last !== y) {
			g.strokeStyle = S.look.path;
			g.lineWidth = 1.5;
			g.beginPath();
			g.moveTo(x0, last);
			g.lineTo(x0, y);
			g.stroke();
		}
		last = y;
	}
}

function drawOnTop(g, pen) {
	g.save();
	g.beginPath();
	g.rect(S.left, S.axis, S.width - S.left, S.height);
	g.clip();
	if (S.critical)
		S.timelines.forEach((t) => drawPath(g, pen, t));
	if (S.flows)
		drawFlows(g);
	if (S.hover && placeOf(S.hover.t, S.hover.i))
		outline(g, placeOf(S.hover.t, S.hover.i), S.look.soft, 1);
	if (S.chosen) {
		const { t, i } = S.chosen, place = placeOf(t, i), k = t.transfer[i];
		if (place)
			outline(g, place, S.look.ink, 2);
		if (k >= 0 && t.x.other[k]) {
			const other = t.x.other[k] - 1;
			if (placeOf(t, other))
				outline(g, placeOf(t, other), S.look.ink, 1.5);
			drawArrow(g, t, t.kind[i] === KIND.RECV ? other : i, t.kind[i] === KIND.RECV ? i : other, true);
		}
	}
	g.restore();
}

function drawBar(g) {
	const room = S.height - S.axis;
	if (S.tall <= room)
		return;
	g.fillStyle = S.look.soft;
	g.globalAlpha = 0.5;
	g.fillRect(S.width - 5, S.axis + S.top / S.tall * room, 4, Math.max(20, room * room / S.tall));
	g.globalAlpha = 1;
}

function frame() {
	const began = performance.now(), g = S.g;
	fitCanvas();
	S.ticks = ticks(S.a, S.b, S.width - S.left);
	Object.assign(S.stats, { rects: 0, visits: 0, rows: 0, densest: 0, arrows: 0, counters: [] });
	g.globalAlpha = 1;
	g.fillStyle = S.look.paper;
	g.fillRect(0, 0, S.width, S.height);
	const pen = new Pen(g, S.look, S.stats, S.width);
	g.save();
	g.beginPath();
	g.rect(0, S.axis, S.width, S.height);
	g.clip();
	const labels = drawLines(g, pen);
	S.stats.boxes = S.stats.rects;
	drawOnTop(g, pen);
	drawNames(g, labels);
	g.restore();
	drawAxis(g);
	drawBar(g);
	count(performance.now() - began);
}

/* What tests read. */
function count(took) {
	Object.assign(S.stats, { columns: S.width - S.left, frames: S.stats.frames + 1, frame_ms: took, a: S.a, b: S.b,
		matches: S.matches.length, match: S.match, chosen: S.chosen ? S.chosen.i : -1,
		chosen_name: S.chosen ? nameOf(S.chosen.t, S.chosen.i) : '', critical: S.critical,
		path: S.critical ? S.timelines.map((t) => criticalOf(t).slice(0, 1000).map((s) => [s.from, s.to])) : [],
		left: S.left, axis: S.axis, height: S.height, scale: S.scale, shifts: S.timelines.map((t) => t.shift),
		lanes: S.lines.filter((l) => l.what === 'lane').map((l) => [l.t.index, l.lane.index, rowPlace(l, 0).y]) });
	clearTimeout(S.later);
	S.later = setTimeout(fillTable, 200);
}
