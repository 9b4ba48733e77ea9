/* Sweeps: all of the folder, and one with its curves over one another, its values and its trials. */
/* What a trial sets of a key, as the sweep wrote it: "key=value". */
const valueOf = (trial, key) => (trial.set.find((s) => s.startsWith(key + '=')) || '').slice(key.length + 1);

/* In [0, 1] on the key's axis. */
function heightOf(key, text) {
	const at = key.values.indexOf(text), v = Number(text);

	if (key.kind === 'choice')
		return key.values.length > 1 ? Math.max(0, at) / (key.values.length - 1) : 0.5;
	if (key.kind.startsWith('log'))
		return Math.log(v / key.from) / Math.log(key.to / key.from);
	return (v - key.from) / (key.to - key.from);
}

const last = (t) => (t.rungs.length ? t.rungs[t.rungs.length - 1].metric : null);
const lookOf = (s, t) => (t.trial === s.best ? 'best' : t.state === 'done' ? 'end' : 'others');
/* others first, so that the best lies on top */
const inOrder = (s) => ['others', 'end', 'best'].flatMap((look) => s.trials.filter((t) => lookOf(s, t) === look &&
	isNumber(last(t))));
const nameOf = (t) => 'trial ' + t.trial + ': ' + t.values;
const LOOKS = [['best', 'the best'], ['end', 'at the last rung'], ['others', 'others']];
const looksLegend = () => LOOKS.map(([c, text]) => el('span', {}, el('i', { class: c }), text));

function sweepCurves(s) {
	const rungs = s.trials.flatMap((t) => t.rungs), xs = range(rungs.map((r) => r.step), true);

	return plot(s.metric + ' by step', xs, range(rungs.map((r) => r.metric)), (v) => short(v), (x, y) =>
		inOrder(s).map((t) => {
			const points = t.rungs.filter((r) => isNumber(r.metric)).map((r) => [x(r.step), y(r.metric)]);
			if (points.length === 1)
				points.unshift([points[0][0] - 6, points[0][1]]);
			return el('svg:path', { class: 'line ' + lookOf(s, t), d: points.map((p, i) => (i ? 'L' : 'M') +
				p[0].toFixed(1) + ',' + p[1].toFixed(1)).join('') }, el('svg:title', {}, nameOf(t)));
		}), looksLegend());
}

/* Parallel coordinates: an axis a key and one for the metric, a line a trial. */
function sweepValues(s) {
	const width = ($('main').clientWidth || 600) - 24, wide = Math.max(260, width > 860 ? width / 2 - 20 : width);
	const height = 230;
	const [low, high] = range(s.trials.map(last));
	const ends = s.keys.map((k) => (k.kind === 'choice' ? [k.values[0], k.values[k.values.length - 1]] :
		[short(k.from), short(k.to)])).concat([[short(low), short(high)]]);
	const n = s.keys.length + 1, fits = (key) => key.length * 7 < wide / n;
	const names = s.keys.map((k) => (fits(k.key) ? k.key : k.key.split('.').pop())).concat([s.metric]);
	const x = (a) => 46 + a / Math.max(1, n - 1) * (wide - 92), y = (h) => height - 46 - h * (height - 66);
	const svg = el('svg:svg', { class: 'plot', viewBox: '0 0 ' + wide + ' ' + height, role: 'img',
		'aria-label': 'values of each trial and its metric' });

	for (const t of inOrder(s)) {
		const at = s.keys.map((k) => heightOf(k, valueOf(t, k.key))).concat([(last(t) - low) / (high - low)]);
		fill(svg, el('svg:path', { class: 'line ' + lookOf(s, t), d: at.map((h, a) => (a ? 'L' : 'M') + x(a).toFixed(1) +
			',' + y(isNumber(h) ? h : 0).toFixed(1)).join('') }, el('svg:title', {}, nameOf(t))));
	}
	names.forEach((name, a) => fill(svg, el('svg:line', { class: 'axis', x1: x(a), x2: x(a), y1: y(0), y2: y(1) }),
		[[ends[a][1], y(1) - 6], [ends[a][0], y(0) + 14], [name, y(0) + (a % 2 ? 40 : 27)]].map(([text, at]) =>
			el('svg:text', { x: x(a), y: at, 'text-anchor': 'middle' }, text))));
	return el('figure', {}, el('figcaption', {}, 'values, a line a trial; ' + s.metric + ' is that of its last rung'), svg);
}

function sweepTrials(s) {
	return table(['#trial', 'state', '#steps', '#' + s.metric, 'values', 'digest', 'why'], s.trials.map((t) => [
		t.trial === s.best ? el('b', {}, t.trial) : t.trial, el('span', { class: t.state }, t.state), t.steps,
		t.rungs.length ? short(last(t), 6) : '', t.values, el('code', {}, t.digest), t.why]), 'It has no trials.');
}

const partOf = (s) => short(100 * s.steps / s.exhaustive) + ' %';

async function showSweep(main, name) {
	const box = el('div', {});
	let due = 0, busy = false, was = '', over = false;

	fill(main, el('h2', {}, name, el('span', { class: 'soft' }, '  sweep')), box);
	const draw = async () => {
		const s = await get(target('/v1/sweeps/{sweep}', name)), text = JSON.stringify(s);
		over = s.over;
		if (text === was)
			return;
		was = text;
		fill(clear(box), facts([['method', s.method], ['metric', s.goal + ' ' + s.metric],
			['state', s.over ? 'over' : 'goes on'], ['trials', s.trials.length],
			['best', s.best < 0 ? '' : 'trial ' + s.best + ', ' + short(last(s.trials[s.best]), 6)],
			['steps', compact(s.steps) + ', ' + partOf(s) + ' of all']]),
		s.trials.some((t) => isNumber(last(t))) ? el('div', { class: 'plots' }, sweepCurves(s), sweepValues(s)) :
			el('p', { class: 'soft' }, 'No trial has reported yet.'), el('h3', {}, 'Trials'), sweepTrials(s));
	};
	await draw();
	return () => {
		if (performance.now() < due || busy || over)
			return;
		due = performance.now() + 1900;
		busy = true;
		draw().catch(() => alive(false)).finally(() => { busy = false; });
	};
}

async function showSweeps(main, name) {
	if (name)
		return showSweep(main, name);
	const rows = el('div', { id: 'sweeps' });
	let due = 0, busy = false;
	const draw = async () => {
		const all = await get('/v1/sweeps');
		fill(clear(rows), table(['sweep', 'method', 'metric', '#trials', '#best', '#steps', '#of all', ''],
			all.sweeps.map((s) => [el('a', { href: '#/sweeps/' + s.name }, s.name), s.method, s.goal + ' ' + s.metric,
				s.trials_n, s.best < 0 ? '' : s.best, compact(s.steps), partOf(s), s.over ? 'over' : 'goes on']),
			'There are no sweeps: heddle sweep FILE --dir DIR makes one.'));
	};

	fill(main, el('h2', {}, 'Sweeps'), rows);
	await draw();
	return () => {
		if (performance.now() < due || busy)
			return;
		due = performance.now() + 2900;
		busy = true;
		draw().catch(() => alive(false)).finally(() => { busy = false; });
	};
}
