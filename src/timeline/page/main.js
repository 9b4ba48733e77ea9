/* What is shown, and what the reader of the page does to it. */

function byId(id) { return document.getElementById(id); }

/* a, b: times in view, from each timeline's shift; top: how far it is scrolled, in pixels */
const S = { head: null, timelines: [], lines: [], a: 0, b: 1, top: 0, tall: 0, scale: 1, left: 0, axis: 0, width: 0,
	height: 0, chosen: null, hover: null, critical: false, flows: false, matches: [], match: -1, query: '',
	stats: { ready: false, frames: 0, errors: [] }, look: null, g: null, later: 0 };
window.hdStats = S.stats;
window.addEventListener('error', (e) => S.stats.errors.push(String(e.message)));

/* ---- the part of time in view ---- */

function all() {
	return { a: Math.min(...S.timelines.map((t) => t.begin - t.shift)),
		b: Math.max(...S.timelines.map((t) => t.end - t.shift)) };
}

function show(a, b) {
	const whole = all(), longest = 1.2 * Math.max(1000, whole.b - whole.a), span = Math.min(longest,
		Math.max(100, b - a)), middle = (a + b) / 2;
	const from = Math.max(whole.a - span * 0.9, Math.min(middle - span / 2, whole.b - span * 0.1));
	S.a = from;
	S.b = from + span;
	redraw();
}

function showAll() {
	const whole = all(), margin = 0.01 * Math.max(1000, whole.b - whole.a);
	show(whole.a - margin, whole.b + margin);
}

function pan(share) { const d = share * (S.b - S.a); show(S.a + d, S.b + d); }

/* x: pixel that stays; undefined: the middle. */
function zoom(factor, x) {
	const at = x === undefined ? (S.a + S.b) / 2 : S.a + (Math.max(S.left, x) - S.left) / S.scale;
	show(at - (at - S.a) * factor, at + (S.b - at) * factor);
}

function scrollTo(top) { S.top = top; redraw(); }

/* ---- steps ---- */

function chooseStep(t, k) {
	const s = t.bySteps[k];
	if (!s)
		return;
	t.step_now = k;
	if (S.timelines.length > 1)
		t.shift = s.begin;
	if (t.pick)
		t.pick.value = s.number;
	const margin = 0.03 * Math.max(100, s.end - s.begin);
	const longest = S.timelines.length > 1 ? Math.max(...S.timelines.map((o) => {
		const step = o.bySteps[o.step_now];
		return step ? step.end - step.begin : 0;
	})) : s.end - s.begin;
	show(s.begin - t.shift - margin, s.begin - t.shift + longest + margin);
	fillChosen();
}

function stepBy(t, by) { chooseStep(t, Math.max(0, Math.min(t.bySteps.length - 1, t.step_now + by))); }

function button(parent, text, label, act) {
	const b = element('button', text, parent);
	b.type = 'button';
	b.setAttribute('aria-label', label);
	b.title = label;
	b.addEventListener('click', act);
	return b;
}

function putPick(t) {
	if (!t.bySteps.length)
		return;
	const span = element('span', undefined, byId('steps')), first = t.bySteps[0].number;
	const last = t.bySteps[t.bySteps.length - 1].number, of = S.timelines.length > 1 ? ' of ' + t.title : '';
	span.className = 'pick';
	element('b', S.timelines.length > 1 ? t.title : 'step', span).title = t.title;
	button(span, '\u2039', 'previous step' + of, () => stepBy(t, -1));
	const input = element('input', undefined, span);
	Object.assign(input, { type: 'number', min: first, max: last, value: t.bySteps[t.step_now].number });
	input.setAttribute('aria-label', 'step' + of);
	input.addEventListener('change', () => {
		const wanted = Number(input.value), k = t.bySteps.findIndex((s) => s.number >= wanted);
		chooseStep(t, k < 0 ? t.bySteps.length - 1 : k);
	});
	button(span, '\u203a', 'next step' + of, () => stepBy(t, 1));
	element('span', first + ' to ' + last, span).className = 'soft';
	t.pick = input;
}

/* The first number that all have and committed stands at zero in each. */
function alignSteps() {
	const common = S.timelines[0].bySteps.find((s) => S.timelines.every((t) => t.bySteps.some((o) =>
		o.number === s.number && o.committed)));
	for (const t of S.timelines) {
		if (common)
			t.step_now = t.bySteps.findIndex((s) => s.number === common.number);
		if (t.bySteps[t.step_now])
			t.shift = t.bySteps[t.step_now].begin;
	}
}

/* ---- what is chosen ---- */

function choose(e, go) {
	S.chosen = e;
	if (e && go) {
		const { t, i } = e, took = t.t1[i] - t.t0[i], middle = (t.t0[i] + t.t1[i]) / 2 - t.shift;
		let span = S.b - S.a;
		if (took && took / span * (S.width - S.left) < 8)
			span = Math.max(took * 30, 2000);
		else if (took > span)
			span = took * 1.2;
		if (middle < S.a + span * 0.05 || middle > S.b - span * 0.05 || span !== S.b - S.a)
			show(middle - span / 2, middle + span / 2);
		t.processes[t.lanes[t.lane[i]].process].folded = false;
		layOut();
		const line = lineOf(t, i), room = S.height - S.axis;
		if (line && (line.y < S.top || line.y + line.h > S.top + room))
			S.top = Math.max(0, line.y - room / 3);
	}
	fillChosen();
	redraw();
}

/* Buttons say what is on. */
function press() {
	byId('critical').setAttribute('aria-pressed', String(S.critical));
	byId('flows').setAttribute('aria-pressed', String(S.flows));
	fillChosen();
	redraw();
}

function toggle(what) { S[what] = !S[what]; press(); }

function arrowKey(key) {
	const { t, i } = S.chosen || {};
	if (!S.chosen) {
		const first = inView().events[0];
		if (first)
			choose(first, true);
		return;
	}
	if (key === 'ArrowLeft' || key === 'ArrowRight') {
		const next = neighbour(t, i, key === 'ArrowLeft' ? -1 : 1);
		if (next >= 0)
			choose({ t, i: next }, true);
	} else {
		const next = acrossRows(t, i, key === 'ArrowUp' ? -1 : 1);
		if (next)
			choose(next, true);
	}
}

/* key, what it does, as the help says it */
const KEYS = [
	['a', () => pan(-0.25), 'a, d', 'move left, right'], ['d', () => pan(0.25)],
	['w', () => zoom(0.6), 'w, s', 'zoom in, out'], ['s', () => zoom(1 / 0.6)],
	['ArrowLeft', arrowKey, 'arrows', 'to the next event of the row; to the row above, below'],
	['ArrowRight', arrowKey], ['ArrowUp', arrowKey], ['ArrowDown', arrowKey],
	['PageUp', () => scrollTo(S.top - 200), 'Page up, down', 'scroll'], ['PageDown', () => scrollTo(S.top + 200)],
	['/', () => byId('find').select(), '/', 'search; Enter and Shift Enter: next, previous'],
	['n', () => goToMatch(1), 'n, p', 'next, previous match'], ['p', () => goToMatch(-1)],
	['[', () => stepBy(S.timelines[0], -1), '[, ]', 'previous, next step'], [']', () => stepBy(S.timelines[0], 1)],
	['c', () => toggle('critical'), 'c', 'critical path of the step'],
	['f', () => toggle('flows'), 'f', 'arrows of all transfers in view'],
	['0', showAll, '0', 'everything'],
	['t', () => { byId('table').open = !byId('table').open; fillTable(); }, 't', 'table of what is in view'],
	['?', () => byId('keys').showModal(), '?', 'these keys'],
	['Escape', () => { S.critical = S.flows = false; choose(null); press(); }, 'Esc', 'nothing is chosen'],
];

function onKey(e) {
	const typing = e.target instanceof HTMLInputElement;
	if (typing && e.key === 'Escape')
		byId('canvas').focus();
	const inControl = e.target instanceof HTMLButtonElement || (e.target instanceof HTMLElement &&
		e.target.tagName === 'SUMMARY');
	const row = KEYS.find((k) => k[0] === e.key);
	if (!row || typing || e.ctrlKey || e.metaKey || e.altKey || byId('keys').open ||
		(inControl && e.key.startsWith('Arrow')))
		return;
	e.preventDefault();
	row[1](e.key);
}

/* ---- pointer ---- */

const pointers = new Map();
let moved = 0;

function hover(x, y) {
	const e = pointers.size ? null : eventAt(x, y, 2), tip = byId('tip');
	if (!!e !== !!S.hover || (e && (e.t !== S.hover.t || e.i !== S.hover.i))) {
		S.hover = e;
		if (e)
			fillTip(e);
		redraw();
	}
	tip.hidden = !e;
	if (!e)
		return;
	const w = tip.offsetWidth, h = tip.offsetHeight;
	tip.style.left = Math.max(4, Math.min(x + 14, S.width - w - 4)) + 'px';
	tip.style.top = (y + 18 + h < S.height ? y + 18 : Math.max(4, y - h - 12)) + 'px';
}

function click(x, y) {
	const line = lineAt(y);
	if (line && line.what === 'process') {
		line.process.folded = !line.process.folded;
		layOut();
		redraw();
	} else if (y > AXIS && y < S.axis && x > S.left) {
		const t = S.timelines[Math.floor((y - AXIS) / HEIGHT.steps)], at = S.a + (x - S.left) / S.scale + t.shift;
		const k = t.bySteps.findIndex((s) => s.begin <= at && at <= s.end);
		if (k >= 0)
			chooseStep(t, k);
	} else {
		choose(eventAt(x, y, 6));
	}
}

function onMove(e) {
	const was = pointers.get(e.pointerId);
	if (!was) {
		if (e.pointerType === 'mouse')
			hover(e.offsetX, e.offsetY);
		return;
	}
	const now = { x: e.offsetX, y: e.offsetY }, others = [...pointers].filter(([id]) => id !== e.pointerId);
	pointers.set(e.pointerId, now);
	moved += Math.abs(now.x - was.x) + Math.abs(now.y - was.y);
	if (others.length) {
		const o = others[0][1], before = Math.max(10, Math.hypot(was.x - o.x, was.y - o.y));
		zoom(before / Math.max(10, Math.hypot(now.x - o.x, now.y - o.y)), (now.x + o.x) / 2);
	} else if (moved > 4) {
		S.top -= now.y - was.y;
		show(S.a - (now.x - was.x) / S.scale, S.b - (now.x - was.x) / S.scale);
	}
}

function onUp(e) {
	const had = pointers.delete(e.pointerId);
	if (had && !pointers.size && moved <= 4 && e.type === 'pointerup')
		click(e.offsetX, e.offsetY);
}

function onWheel(e) {
	e.preventDefault();
	byId('tip').hidden = true;
	const lines = e.deltaMode === 1 ? 16 : 1;
	if (e.ctrlKey || e.metaKey)
		zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY * lines / 300))), e.offsetX);
	else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY))
		pan((e.deltaX || e.deltaY) * lines / (S.width - S.left));
	else
		scrollTo(S.top + e.deltaY * lines);
}

function listen() {
	const canvas = byId('canvas'), on = (id, act) => byId(id).addEventListener('click', act);
	document.addEventListener('keydown', onKey);
	canvas.addEventListener('pointerdown', (e) => {
		if (!pointers.size)
			moved = 0;
		pointers.set(e.pointerId, { x: e.offsetX, y: e.offsetY });
		canvas.setPointerCapture(e.pointerId);
		byId('tip').hidden = true;
	});
	canvas.addEventListener('pointermove', onMove);
	for (const end of ['pointerup', 'pointercancel'])
		canvas.addEventListener(end, onUp);
	canvas.addEventListener('pointerleave', () => hover(-1, -1));
	canvas.addEventListener('wheel', onWheel, { passive: false });
	on('critical', () => toggle('critical'));
	on('flows', () => toggle('flows'));
	on('more', () => zoom(0.6));
	on('less', () => zoom(1 / 0.6));
	on('fit', showAll);
	on('help', () => byId('keys').showModal());
	on('prev', () => goToMatch(-1));
	byId('search').addEventListener('submit', (e) => { e.preventDefault(); goToMatch(1); });
	byId('find').addEventListener('input', () => { findAll(byId('find').value.trim()); redraw(); });
	byId('find').addEventListener('keydown', (e) => {
		if (e.key === 'Enter' && e.shiftKey) {
			e.preventDefault();
			goToMatch(-1);
		}
	});
	byId('table').addEventListener('toggle', fillTable);
	new ResizeObserver(redraw).observe(byId('main'));
	matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
		S.look = readLook();
		fillLegend();
		fillChosen();
		redraw();
	});
}

/* ---- the beginning ---- */

function sayNote() {
	const out = [], unaligned = [];
	for (const t of S.timelines) {
		const name = S.timelines.length > 1 ? t.title + ': ' : '';
		if (!t.all)
			out.push(name + t.events + ' events: ' + (t.step_from <= t.step_to ? 'steps ' + t.step_from + ' to ' +
				t.step_to + ' are here whole, of the rest' : 'no step fits whole; of all') +
				' bins of time, without search');
		if (t.lost)
			out.push(name + t.lost + ' events were overwritten or missed (red lanes)');
		if (t.unknown)
			out.push(name + t.unknown + ' events of kinds unknown here');
		if (!t.events)
			out.push(name + 'no events');
		t.processes.filter((p) => !p.aligned).forEach((p) => unaligned.push(p.name));
	}
	if (unaligned.length)
		out.push('not aligned with the others: ' + unaligned.slice(0, 8).join(', '));
	byId('note').textContent = out.join('. ');
	byId('note').hidden = !out.length;
}

function rest() { return new Promise((done) => setTimeout(done, 0)); }

/* Lane after lane, with a breath between, so that the page answers while it reads. */
async function read() {
	S.head = JSON.parse(byId('head').textContent);
	byId('title').textContent = document.title = S.head.title;
	const nlanes = S.head.timelines.reduce((n, t) => n + t.lanes.length, 0);
	let done = 0, paused = performance.now();
	for (let k = 0; k < S.head.timelines.length; k++) {
		const data = byId('data' + k);
		const t = readTimeline(S.head.timelines[k], k, data.textContent);
		data.textContent = '';
		S.timelines.push(t);
		for (const lane of t.lanes) {
			prepareLane(t, lane);
			done++;
			if (performance.now() - paused > 40) {
				byId('busy').textContent = 'reading, ' + Math.round(100 * done / nlanes) + ' %';
				await rest();
				paused = performance.now();
			}
		}
	}
}

async function start() {
	S.g = byId('canvas').getContext('2d', { alpha: false });
	const began = performance.now();
	await read();
	S.look = readLook();
	for (const [, , keys, text] of KEYS)
		if (keys) {
			element('dt', keys, byId('keys_list'));
			element('dd', text, byId('keys_list'));
		}
	if (S.timelines.length > 1)
		alignSteps();
	S.timelines.forEach(putPick);
	sayNote();
	fillLegend();
	layOut();
	listen();
	byId('busy').hidden = true;
	if (S.timelines.length > 1)
		chooseStep(S.timelines[0], S.timelines[0].step_now);
	if (S.timelines.length === 1 || !S.timelines[0].bySteps.length)
		showAll();
	S.stats.ready_ms = performance.now() - began;
	S.stats.events = S.timelines.reduce((n, t) => n + t.n, 0);
	S.stats.ready = true;
}

start().catch((e) => {
	S.stats.errors.push(String(e && e.stack || e));
	byId('busy').textContent = 'This page could not be read: ' + e;
	byId('busy').hidden = false;
});
