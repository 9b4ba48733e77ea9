/* Charts as SVG, drawn at the width that there is. */
const PLOT = { height: 190, left: 46, right: 8, top: 8, bottom: 22 };

function ticks(low, high, n) {
	const rough = (high - low) / n || 1, ten = 10 ** Math.floor(Math.log10(rough));
	const by = [1, 2, 5, 10].map((k) => k * ten).find((k) => k >= rough) || ten, all = [];

	for (let v = Math.ceil(low / by) * by; v <= high + by * 1e-9; v += by)
		all.push(Math.abs(v) < by * 1e-9 ? 0 : v);
	return all;
}

/* Axes and what `inside(x, y)` draws; x and y map values to pixels. */
function plot(title, xRange, yRange, xText, inside, legend) {
	const width = ($('main').clientWidth || 600) - 24, wide = Math.max(260, width > 860 ? width / 2 - 20 : width);
	const [x0, x1] = xRange, [y0, y1] = yRange;
	const x = (v) => PLOT.left + (v - x0) / (x1 - x0 || 1) * (wide - PLOT.left - PLOT.right);
	const y = (v) => PLOT.height - PLOT.bottom - (v - y0) / (y1 - y0 || 1) * (PLOT.height - PLOT.top - PLOT.bottom);
	const svg = el('svg:svg', { class: 'plot', viewBox: '0 0 ' + wide + ' ' + PLOT.height, role: 'img',
		'aria-label': title });

	for (const v of ticks(y0, y1, 4))
		fill(svg, el('svg:line', { class: 'grid', x1: PLOT.left, x2: wide - PLOT.right, y1: y(v), y2: y(v) }),
			el('svg:text', { x: PLOT.left - 5, y: y(v) + 4, 'text-anchor': 'end' }, short(v)));
	for (const v of ticks(x0, x1, 4))
		fill(svg, el('svg:text', { x: x(v), y: PLOT.height - 6, 'text-anchor': v === x0 ? 'start' : 'middle' },
			xText(v)));
	fill(svg, inside(x, y));
	return el('figure', {}, el('figcaption', {}, title), svg, legend && el('div', { class: 'legend' }, legend));
}

function range(values, fromZero) {
	let low = fromZero ? 0 : Infinity, high = fromZero ? 1 : -Infinity;

	for (const v of values)
		if (isNumber(v)) {
			low = Math.min(low, v);
			high = Math.max(high, v);
		}
	if (!(low <= high))
		return [0, 1];
	return low === high ? [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2] : [low, high];
}

/* points: [x, y], x ascending; a value that is no number breaks the line. `stepped`: it holds until the next. */
function lines(title, points, xText, fromZero, stepped) {
	const xs = range(points.map((p) => p[0])), ys = range(points.map((p) => p[1]), fromZero);

	return plot(title, xs, ys, xText, (x, y) => {
		let d = '', pen = false, last = 0;
		for (const [a, b] of points) {
			if (!isNumber(b)) {
				pen = false;
				continue;
			}
			if (pen && stepped)
				d += 'L' + x(a).toFixed(1) + ',' + last;
			last = y(b).toFixed(1);
			d += (pen ? 'L' : 'M') + x(a).toFixed(1) + ',' + last;
			pen = true;
		}
		return el('svg:path', { class: 'line', d });
	});
}

/* rows: { at, values: [n] }; one above the other, in classes [n]. */
function areas(title, rows, classes, names, xText) {
	const sums = rows.map((r) => r.values.reduce((a, b) => a + b, 0));
	const legend = names.map((n, i) => el('span', {}, el('i', { class: classes[i] }), n));

	return plot(title, range(rows.map((r) => r.at)), range(sums, true), xText, (x, y) => {
		const base = rows.map(() => 0), drawn = [];
		classes.forEach((c, k) => {
			const low = rows.map((r, i) => x(r.at).toFixed(1) + ',' + y(base[i]).toFixed(1));
			rows.forEach((r, i) => { base[i] += r.values[k]; });
			const high = rows.map((r, i) => x(r.at).toFixed(1) + ',' + y(base[i]).toFixed(1));
			drawn.push(el('svg:polygon', { class: 'area ' + c, points: high.concat(low.reverse()).join(' ') }));
		});
		return drawn;
	}, legend);
}

/* Parts of a whole, as one bar with its legend; parts: [name, value, text]. */
function bar(parts) {
	const sum = parts.reduce((a, p) => a + p[1], 0) || 1;
	const svg = el('svg:svg', { class: 'bar', viewBox: '0 0 1000 14', preserveAspectRatio: 'none', role: 'img',
		'aria-label': parts.map((p) => p[0] + ' ' + p[2]).join(', ') });
	let at = 0;

	parts.forEach(([, value], i) => {
		const width = value / sum * 1000;
		if (value > 0)
			fill(svg, el('svg:rect', { class: 'p' + i, x: at, y: 0, width, height: 14 }));
		at += width;
	});
	return [svg, el('div', { class: 'legend' }, parts.map(([name, value, text], i) => value > 0 &&
		el('span', {}, el('i', { class: 'p' + i }), name + ' ' + text)))];
}
