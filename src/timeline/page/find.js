/* Search: words that all must be in the name, and vn:3 stage:1 step:12 lane:TEXT class:TEXT. */

const FIELDS = {
	vn: (t, v) => { const n = Number(v) + 1; return (i) => t.vn[i] === n; },
	stage: (t, v) => { const n = Number(v) + 1; return (i) => t.stage[i] === n; },
	step: (t, v) => { const n = Number(v) + 1; return (i) => t.step[i] === n; },
	lane: (t, v) => {
		const good = t.lanes.map((l) => (t.processes[l.process].name + ' ' + l.name).toLowerCase().includes(v));
		return (i) => good[t.lane[i]];
	},
	class: (t, v) => {
		const good = S.head.classes.map((c) => c.text.includes(v));
		return (i) => good[t.class[i]];
	},
};

function wordTest(t, word) {
	const colon = word.indexOf(':'), field = colon > 0 ? FIELDS[word.slice(0, colon)] : undefined;
	if (field)
		return field(t, word.slice(colon + 1));
	const good = t.names.map((n) => n.toLowerCase().includes(word));
	const kinds = S.head.kinds.reduce((all, [n, text]) => { all[n] = text.includes(word); return all; }, []);
	return (i) => t.kind[i] === KIND.WAIT ? nameOf(t, i).includes(word) : t.name[i] ? good[t.name[i]] :
		kinds[t.kind[i]];
}

function matchesIn(t, words) {
	const tests = words.map((w) => wordTest(t, w)), out = [];
	for (let i = 0; i < t.n; i++)
		if (tests.every((test) => test(i)))
			out.push(i);
	const most = 200000;                    /* of more the order is that of the lanes */
	if (out.length <= most)
		out.sort((a, b) => t.t0[a] - t.t0[b] || a - b);
	return out.map((i) => ({ t, i }));
}

function findAll(text) {
	const words = text.toLowerCase().split(/\s+/).filter((w) => w);
	S.query = text;
	S.matches = [];
	S.match = -1;
	for (const t of words.length ? S.timelines : [])
		S.matches = S.matches.concat(matchesIn(t, words));
	sayFound();
}

function sayFound() {
	const n = S.matches.length;
	byId('found').textContent = !S.query ? '' : !n ? 'none' : S.match < 0 ? String(n) : (S.match + 1) + ' of ' + n;
}

/* The first from what is in view on, then one after the other. */
function goToMatch(by) {
	const text = byId('find').value.trim(), n = S.query === text ? S.matches.length : (findAll(text), S.matches.length);
	if (!n)
		return;
	if (S.match < 0) {
		const k = S.matches.findIndex((m) => m.t.t0[m.i] - m.t.shift >= S.a);
		S.match = by < 0 ? (k > 0 ? k - 1 : n - 1) : Math.max(0, k);
	} else {
		S.match = (S.match + by + n) % n;
	}
	sayFound();
	choose(S.matches[S.match], true);
}
