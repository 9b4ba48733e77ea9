/* The same data as text: what is in view as a table, what is chosen as a list. All of it is text to the
 * document, never markup. */

const TABLE_ROWS = 200;

function element(name, text, parent) {
	const e = document.createElement(name);
	if (text !== undefined)
		e.textContent = text;
	if (parent)
		parent.appendChild(e);
	return e;
}

function dot(parent, c) {
	const i = element('i', undefined, parent);
	i.className = 'dot';
	i.style.background = S.look.fill[c];
}

/* Events that overlap the view, of lanes that are shown. */
function inView() {
	const out = [];
	let n = 0;
	for (const line of S.lines) {
		if (line.what !== 'lane')
			continue;
		const { t, lane } = line, from = S.a + t.shift, to = S.b + t.shift;
		for (const row of lane.rows) {
			const base = row.levels[0], first = search(row.latest, from), end = search(base.t0, to, true);
			n += Math.max(0, end - first);
			for (let k = first; k < end && k - first < TABLE_ROWS; k++)
				out.push({ t, i: row.events[k] });
		}
		const times = marksTimes(t, lane.marks), first = search(times, from), end = search(times, to, true);
		n += end - first;
		for (let k = first; k < end && k - first < TABLE_ROWS; k++)
			out.push({ t, i: lane.marks[k] });
	}
	out.sort((p, q) => p.t.t0[p.i] - p.t.shift - (q.t.t0[q.i] - q.t.shift));
	return { n, events: out.slice(0, TABLE_ROWS) };
}

function fillTable() {
	if (!byId('table').open)
		return;
	const seen = inView(), body = byId('rows');
	body.textContent = '';
	for (const { t, i } of seen.events) {
		const tr = element('tr', undefined, body);
		element('td', sayTime(t.t0[i] - t.shift, 9), tr);
		element('td', t.t1[i] > t.t0[i] ? sayTime(t.t1[i] - t.t0[i]) : '', tr);
		element('td', nameOf(t, i), tr);
		element('td', S.head.classes[t.class[i]].text, tr);
		element('td', numberOf(t, i), tr);
		element('td', t.kind[i] === KIND.OP || isTransfer(t.kind[i]) ? sayBytes(t.arg[i]) : '', tr);
		element('td', whereOf(t, i), tr);
	}
	byId('caption').textContent = (seen.n > seen.events.length ? 'The first ' + seen.events.length + ' of ' : '') +
		seen.n + ' events from ' + sayTime(S.a, 9) + ' to ' + sayTime(S.b, 9);
}

function putHead(parent, t, i) {
	dot(parent, t.class[i]);
	element('b', nameOf(t, i), parent);
	element('span', ' ' + S.head.classes[t.class[i]].text, parent).className = 'soft';
}

function fillTip(e) {
	const tip = byId('tip');
	tip.textContent = '';
	putHead(tip, e.t, e.i);
	const list = element('dl', undefined, tip);
	for (const [label, text] of facts(e.t, e.i)) {
		element('dt', label, list);
		element('dd', text, list);
	}
}

/* Of the event that is chosen, or of the critical path. */
function fillChosen() {
	const at = byId('chosen'), e = S.chosen;
	at.textContent = '';
	at.hidden = !e && !S.critical;
	if (at.hidden)
		return;
	const top = element('div', undefined, at);
	top.className = 'top';
	if (e)
		putHead(element('span', undefined, top), e.t, e.i);
	for (const t of S.critical ? S.timelines : [])
		element('span', (S.timelines.length > 1 ? t.title + ', ' : '') + sayPath(t), top);
	const close = element('button', 'close', top);
	close.type = 'button';
	close.addEventListener('click', () => { S.critical = false; choose(null); press(); });
	const list = element('dl', undefined, at);
	for (const [label, text] of e ? facts(e.t, e.i) : []) {
		const pair = element('div', undefined, list);
		element('dt', label, pair);
		element('dd', text, pair);
	}
}

function fillLegend() {
	const used = new Set();
	for (const t of S.timelines) {
		for (let i = 0; i < t.n && used.size < NCLASSES; i++)
			used.add(t.class[i]);
		for (const c of t.bins.class)
			used.add(c);
	}
	byId('legend').textContent = '';
	S.head.classes.forEach((c, k) => {
		if (!used.has(k))
			return;
		const span = element('span', undefined, byId('legend'));
		dot(span, k);
		span.appendChild(document.createTextNode(c.text));
	});
}
