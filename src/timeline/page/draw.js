/* Rectangles of one row. A column of pixels gets four at most: the end of a box of a pixel or more, what is
 * smaller taken together, the begin of the next box, which may have two parts. Nothing is drawn on top of a
 * box. */

const SHADES = 4;

/* Where boxes go: canvas, the row's place, and what was counted. */
function Pen(g, look, stats, width) {
	this.g = g;
	this.look = look;
	this.stats = stats;
	this.weight = new Float64Array(NCLASSES);
	this.touched = new Uint8Array(Math.ceil(width) + 2);
}

Pen.prototype.open = function (y, h, left, right, dim) {
	Object.assign(this, { y, h, left, right, dim, cursor: left, column: -1, busy: 0, run: null, labels: [] });
	this.touched.fill(0);
};

Pen.prototype.rect = function (x0, x1, c, shade) {
	const alpha = (this.dim ? 0.3 : 1) * (shade < 0 ? 0.25 : 0.4 + 0.6 * shade / SHADES);
	this.g.globalAlpha = alpha;
	this.g.fillStyle = this.look.fill[c];
	this.g.fillRect(x0, this.y, x1 - x0, this.h);
	this.stats.rects++;
	const first = Math.floor(x0), last = Math.max(first, Math.ceil(x1) - 1);
	this.stats.densest = Math.max(this.stats.densest, ++this.touched[first]);
	if (last !== first)
		this.stats.densest = Math.max(this.stats.densest, ++this.touched[last]);
};

Pen.prototype.flushRun = function () {
	if (this.run)
		this.rect(this.run.x0, this.run.x1, this.run.c, this.run.shade);
	this.run = null;
};

/* The column of what is smaller than a pixel; columns alike become one rectangle. */
Pen.prototype.flushColumn = function () {
	if (this.column < 0)
		return;
	const x0 = Math.max(this.column, this.cursor), x1 = Math.min(this.column + 1, this.right);
	const shade = Math.max(1, Math.min(SHADES, Math.ceil(this.busy * SHADES - 1e-6)));
	const c = busiest(this.weight, 0), run = this.run;
	if (x1 > x0) {
		if (run && run.x1 === x0 && run.c === c && run.shade === shade) {
			run.x1 = x1;
		} else {
			this.flushRun();
			this.run = { x0, x1, c, shade };
		}
		this.cursor = x1;
	}
	this.column = -1;
	this.busy = 0;
	this.weight.fill(0);
};

Pen.prototype.small = function (x0, c, busy) {
	const column = Math.floor(Math.max(x0, this.cursor));
	if (column !== this.column) {
		this.flushColumn();
		this.column = column;
	}
	this.busy += busy;
	this.weight[c] += busy + 1e-6;
};

/* split: until there it waits, and is faint; undefined: it does not. No part is less than a pixel; what is left
 * of a box that others cover is small. */
Pen.prototype.big = function (x0, x1, c, share, split) {
	this.flushColumn();
	let from = Math.max(x0, this.cursor, this.left);
	const to = Math.min(x1, this.right), till = Math.min(split, to - 1);
	if (to - from < 1) {
		if (to > from)
			this.small(from, c, (to - from) * share);
		return false;
	}
	this.flushRun();
	if (till - from >= 1) {
		this.rect(from, till, c, -1);
		from = till;
	}
	this.rect(from, to - (to - from > 4 && x1 <= this.right ? 0.6 : 0), c, Math.max(1, Math.round(share * SHADES)));
	this.cursor = to;
	return true;
};

Pen.prototype.close = function () {
	this.flushColumn();
	this.flushRun();
	this.g.globalAlpha = 1;
};

/* a, scale: time at pixel 0 and pixels per ns, in the timeline's own time. Of row k label(k) is a list of
 * texts, the first that fits is drawn, and split(k) the time until which it waits; null for bins. */
function drawLevels(pen, levels, a, scale, label, split) {
	const top = levels.length - 1;
	let stop = false;

	function visit(k, i) {
		const l = levels[k], x0 = (l.t0[i] - a) * scale, x1 = (l.t1[i] - a) * scale;
		pen.stats.visits++;
		if (x0 >= pen.right) {
			stop = true;
			return;
		}
		if (x1 <= pen.left)
			return;
		if (x1 - x0 < 1) {
			pen.small(x0, l.class[i], l.busy[i] * scale);
		} else if (k === 0) {
			const share = l.busy[i] / (l.t1[i] - l.t0[i]);
			const busy = split ? (split(i) - a) * scale : undefined;
			if (pen.big(x0, x1, l.class[i], Math.min(1, share), busy) && label)
				pen.labels.push([Math.max(x0, pen.left), Math.min(x1, pen.right), i, busy > x0 + 1]);
		} else {
			const end = Math.min(levels[k - 1].n, GROUP * (i + 1));
			for (let j = GROUP * i; j < end && !stop; j++)
				visit(k - 1, j);
		}
	}
	for (let i = 0; i < levels[top].n && !stop; i++)
		visit(top, i);
	pen.close();
	if (label)
		drawLabels(pen, levels[0], label);
}

function drawLabels(pen, base, label) {
	const g = pen.g;
	g.font = Math.min(11, pen.h - 2) + 'px system-ui, sans-serif';
	g.textBaseline = 'middle';
	g.textAlign = 'center';
	for (const [x0, x1, k, faint] of pen.labels) {
		if (x1 - x0 < 9)
			continue;
		for (const text of label(k)) {
			if (!text || textWidth(g, text) > x1 - x0 - 4)
				continue;
			g.fillStyle = faint ? pen.look.ink : pen.look.letters[base.class[k]];
			g.globalAlpha = pen.dim ? 0.5 : 1;
			g.fillText(text, (x0 + x1) / 2, pen.y + pen.h / 2 + 0.5);
			break;
		}
	}
	g.globalAlpha = 1;
}

const widths = new Map();
function textWidth(g, text) {
	const key = g.font + text;
	let w = widths.get(key);
	if (w === undefined) {
		if (widths.size > 5000)
			widths.clear();
		w = g.measureText(text).width;
		widths.set(key, w);
	}
	return w;
}

/* Instants: one in a column of pixels, a diamond above its line. */
function drawMarks(pen, t, marks, a, scale) {
	let last = -1;
	for (let k = search(marksTimes(t, marks), a + pen.left / scale - 5 / scale); k < marks.length; k++) {
		const x = (t.t0[marks[k]] - a) * scale, column = Math.floor(x);
		if (x > pen.right)
			break;
		if (x < pen.left || column === last)
			continue;
		last = column;
		pen.g.fillStyle = pen.look.fill[t.class[marks[k]]];
		pen.g.fillRect(x - 0.5, pen.y, 1, pen.h);
		pen.g.beginPath();
		pen.g.moveTo(x, pen.y - 1);
		pen.g.lineTo(x + 3.5, pen.y + 3);
		pen.g.lineTo(x, pen.y + 7);
		pen.g.lineTo(x - 3.5, pen.y + 3);
		pen.g.fill();
		pen.stats.rects++;
	}
}

/* Begins of an array of marks, made once. */
const marksOf = new WeakMap();
function marksTimes(t, marks) {
	let times = marksOf.get(marks);
	if (!times) {
		times = Float64Array.from(marks, (i) => t.t0[i]);
		marksOf.set(marks, times);
	}
	return times;
}
