/* A chart for each series: all runs that have it, over one another. */
const S = { data: JSON.parse($('data').textContent), shown: [], along: 'step', by: 0, log: false, band: false, find: '' };

/* Where a run has been: null where it has no such series. */
function curve(run, series) { return S.data.runs[run].curves.find((c) => c.series === series) || null; }

/* What is drawn of a curve: { run, x, y, raw, low, high }; logarithms leave out what has none. */
function drawnOf(series) {
	const all = [];

	S.data.runs.forEach((_, run) => {
		const c = S.shown[run] && curve(run, series);
		if (!c)
			return;
		const keep = c.mean.map((_, i) => i).filter((i) => isNumber(c.mean[i]) && (!S.log || c.mean[i] > 0));
		const pick = (list) => keep.map((i) => list[i]), raw = pick(c.mean);
		if (raw.length)
			all.push({ run, x: pick(c[S.along]), raw, y: smoothed(raw, S.by), low: c.low && pick(c.low),
				high: c.high && pick(c.high) });
	});
	return all;
}

function path(d, ys, x, y) {
	return d.x.map((v, i) => (i ? 'L' : 'M') + x(v).toFixed(1) + ',' + y(ys[i]).toFixed(1)).join('');
}

function area(d, x, y) {
	const up = d.x.map((v, i) => x(v).toFixed(1) + ',' + y(d.high[i]).toFixed(1));
	return up.concat(d.x.map((v, i) => x(v).toFixed(1) + ',' + y(d.low[i]).toFixed(1)).reverse()).join(' ');
}

function isConstant(drawn) {
	const r = rangeOf(drawn.flatMap((d) => d.raw));
	return !r || r[0] === r[1];
}

/* The point of a curve that is next to x. */
function near(d, x) {
	let a = 0, b = d.x.length - 1;

	while (b - a > 1) {
		const mid = (a + b) >> 1;
		if (d.x[mid] < x)
			a = mid;
		else
			b = mid;
	}
	return Math.abs(d.x[a] - x) <= Math.abs(d.x[b] - x) ? a : b;
}

function say(box, drawn, x) {
	const rows = drawn.filter((d) => x === null || (d.x[0] <= x && x <= d.x[d.x.length - 1]) || d.x.length === 1);

	box.replaceChildren(...rows.slice(0, 12).map((d) => {
		const i = x === null ? d.x.length - 1 : near(d, x);
		return el('span', {}, el('i', { class: 'dot', colour: colourOf(d.run, S.data.runs.length) }),
			S.data.runs[d.run].name + ' ' + short(d.y[i]) + ' at ' + (S.along === 't' ? duration(d.x[i]) :
				short(d.x[i])));
	}), ...(rows.length > 12 ? [el('span', {}, 'and ' + (rows.length - 12) + ' more')] : []));
}

/* The cursor follows the pointer; arrows move it. */
function follow(svg, box, drawn, xa, width) {
	const wide = width - PLOT.left - PLOT.right;
	const cursor = el('svg:line', { class: 'cursor', y1: PLOT.top, y2: PLOT.height - PLOT.bottom, x1: -9, x2: -9 });
	let share = null;

	const show = () => {
		const px = share === null ? -9 : PLOT.left + share * wide;
		cursor.setAttribute('x1', px);
		cursor.setAttribute('x2', px);
		say(box, drawn, share === null ? null : xa.of(share));
	};
	svg.append(cursor);
	svg.addEventListener('pointermove', (e) => {
		const r = svg.getBoundingClientRect(), at = ((e.clientX - r.left) / r.width * width - PLOT.left) / wide;
		share = Math.min(1, Math.max(0, at));
		show();
	});
	svg.addEventListener('pointerleave', () => { share = null; show(); });
	svg.addEventListener('keydown', (e) => {
		const by = { ArrowLeft: -0.02, ArrowRight: 0.02, Home: -2, End: 2 }[e.key];
		if (!by)
			return;
		share = Math.min(1, Math.max(0, (share === null ? 0.5 : share) + by));
		show();
		e.preventDefault();
	});
	show();
}

function chart(series, drawn, width) {
	const n = S.data.runs.length, ys = drawn.flatMap((d) => S.band && d.low ? d.low.concat(d.high) : S.by ? d.y : d.raw)
		.filter((v) => !S.log || v > 0);
	const xa = axis(rangeOf(drawn.flatMap((d) => [d.x[0], d.x[d.x.length - 1]]))), ya = axis(rangeOf(ys) || [0, 1], S.log);
	const x = (v) => PLOT.left + xa.at(v) * (width - PLOT.left - PLOT.right);
	const y = (v) => PLOT.height - PLOT.bottom - Math.min(1.5, Math.max(-0.5, ya.at(S.log ? Math.max(v, 1e-300) : v))) *
		(PLOT.height - PLOT.top - PLOT.bottom);
	const svg = el('svg:svg', { viewBox: '0 0 ' + width + ' ' + PLOT.height, role: 'img', tabindex: 0,
		'aria-label': S.data.series[series] + ' of ' + drawn.length + ' runs' });
	const box = el('div', { class: 'said', 'aria-live': 'polite' });

	for (const v of ya.marks)
		svg.append(el('svg:line', { class: 'grid', x1: PLOT.left, x2: width - PLOT.right, y1: y(v), y2: y(v) }),
			el('svg:text', { x: PLOT.left - 5, y: y(v) + 4, 'text-anchor': 'end' }, short(v, 3)));
	for (const v of xa.marks)
		svg.append(el('svg:text', { x: x(v), y: PLOT.height - 6, 'text-anchor': 'middle' },
			S.along === 't' ? duration(v) : short(v, 3)));
	for (const d of drawn) {
		const stroke = colourOf(d.run, n);
		if (S.band && d.low)
			svg.append(el('svg:polygon', { class: 'area', points: area(d, x, y), fill: stroke }));
		if (S.by && n <= 8)
			svg.append(el('svg:path', { class: 'faint', d: path(d, d.raw, x, y), stroke }));
		svg.append(d.x.length === 1 ?
			el('svg:circle', { cx: x(d.x[0]), cy: y(d.y[0]), r: 3, fill: stroke }) :
			el('svg:path', { class: 'line', d: path(d, d.y, x, y), stroke }));
	}
	follow(svg, box, drawn, xa, width);
	return el('figure', { class: series === 0 ? 'wide' : null }, el('figcaption', {}, S.data.series[series],
		el('span', {}, { step: 'steps', samples: 'samples', t: 'time' }[S.along])), svg, box);
}

function drawCharts() {
	const wanted = S.find.toLowerCase();

	const all = Math.max(300, $('charts').clientWidth || 520);
	$('charts').replaceChildren(...S.data.series.flatMap((name, series) => {
		const drawn = name.toLowerCase().includes(wanted) ? drawnOf(series) : [];
		if (!drawn.length || (!wanted && series && isConstant(drawn)))
			return [];
		return [chart(series, drawn, series ? Math.min(560, all) : Math.min(1200, all))];
	}));
	if (!$('charts').childElementCount)
		$('charts').append(el('p', { class: 'soft' }, S.data.runs.some((r) => r.curves.length) ?
			'nothing is shown: no series has these letters, or no run is chosen' :
			'no run has a step that is recorded yet'));
}
