/* One job: where it stands and why, its curve, its workers, what it was paid for, and what can be done to it. */
const PARTS = ['useful', 'redundant', 'bubble', 'pause', 'redo', 'rebuild', 'waiting', 'boot'];
const facts = (rows) => el('dl', { class: 'facts' }, rows.filter((r) => r && r[1] !== '' && r[1] !== null).map(([k, v]) =>
	el('div', {}, el('dt', {}, k), el('dd', {}, v))));
const ago = (s) => (store.status && s >= 0 ? duration(store.status.now_s - s) + ' ago' : '');

/* What was expected against what came: 0.25 is a quarter longer. */
const howWrong = (e) => (Math.abs(e) < 0.005 ? 'as expected' : short(Math.abs(e) * 100) + ' % ' +
	(e > 0 ? 'longer' : 'less') + ' than expected');

function jobFacts(j, whole) {
	return facts([['state', el('b', { class: j.state }, j.state)], ['steps', steps(j)],
		['rate', j.rate > 0 ? short(j.rate) + ' steps/s' : ''],
		['left', j.rate > 0 && j.steps > j.step && j.state === 'running' ? duration((j.steps - j.step) / j.rate) : ''],
		['priority', short(j.priority)], ['devices', j.devices_n + ' of ' + j.scale + (j.type ? ' ' + j.type : '')],
		['user', j.user], ['account', j.account], ['partition', j.partition], ['submitted', ago(j.submitted_s)], ['started', ago(j.started_s)], ['ended', ago(j.ended_s)],
		['expected', j.expected_s > 0 ? duration(j.expected_s) : ''],
		['took', j.took_s > 0 ? duration(j.took_s) + (isNumber(j.expected_error) ? ', ' + howWrong(j.expected_error) :
			'') : ''], ['exit code', j.exit >= 0 ? j.exit : ''], ['lease', whole && whole.lease ? whole.lease : ''],
		['failures in a row', whole && whole.failures ? whole.failures : ''],
		['on', whole && whole.devices ? whole.devices.map((name, i) =>
			name + (whole.on && whole.on[i] ? ' (' + whole.on[i] + ')' : '')).join(', ') : ''],
		['digest', whole ? whole.digest : '']]);
}

/* A field and its button, where the scheduler has the route. */
function change(path, j, label, field, value, done) {
	if (!api.has('post', path))
		return null;
	const input = el('input', { type: 'number', id: 'new_' + field, value, step: 'any', min: 0, 'aria-label': label });
	return el('form', { class: 'row', onsubmit: (e) => {
		e.preventDefault();
		attempt(e.submitter, async () => {
			const answer = await post(target(path, j.id), { [field]: Number(input.value) });
			say(done(answer));
			await refresh(new Set([j.id]));
		});
	} }, el('label', {}, label, input), el('button', { id: 'set_' + field }, 'Set'));
}

function jobActions(j) {
	if (OVER.includes(j.state))
		return null;
	const cancel = api.has('post', '/v1/jobs/{job}/cancel') && el('button', { class: 'danger', id: 'cancel', type: 'button',
		onclick: async (e) => {
			const button = e.target;
			if (await sure('Cancel ' + j.name + '?', store.status ? 'It ends, and does not go on later.' :
				'It commits its step and stops; heddle resume goes on with it.'))
				attempt(button, async () => {
					await post(target('/v1/jobs/{job}/cancel', j.id), {});
					say(j.name + ' ends.');
					await refresh(new Set([j.id]));
				});
		} }, store.status ? 'Cancel' : 'Stop');
	return el('div', { class: 'row', id: 'actions' },
		change('/v1/jobs/{job}/priority', j, 'priority', 'priority', j.priority, (a) => 'Its priority is ' + a.priority + '.'),
		change('/v1/jobs/{job}/scale', j, 'devices', 'scale', j.scale, (a) => 'It gets ' + plural(a.scale, 'device') +
			' at once' + (store.status ? ', from the next round on.' : '.')), cancel);
}

function jobCurve(points) {
	if (points.length < 2)
		return el('p', { class: 'soft' }, points.length ? 'One step so far: loss ' + short(points[0].loss) + '.' :
			'No step has been committed yet.');
	return el('div', { class: 'plots' }, lines('loss by step', points.map((p) => [p.step, p.loss]), (v) => short(v)),
		lines('workers over time', points.map((p) => [p.t, p.workers]), duration, true, true),
		lines('milliseconds of a step', points.map((p) => [p.step, p.step_ms]), (v) => short(v), true));
}

function jobWorkers(run) {
	if (!run.workers.length)
		return el('p', { class: 'soft' }, run.why || 'No worker takes part at the moment.');
	return [facts([['workers', run.members + ' of ' + run.target], ['membership', run.membership], ['plan', run.plan],
		['virtual nodes', run.virtual_nodes], ['step', short(run.step_ms) + ' ms'],
		['of that waiting', short(run.wait_ms) + ' ms'], ['loss', short(run.loss, 5)]]),
	table(['worker', 'state', '#devices', '#virtual nodes', '#step ms', '#wait ms', '#speed', 'notice'],
		run.workers.map((w) => [w.id, w.state, w.devices, w.virtual_nodes, short(w.step_ms), short(w.wait_ms),
			short(w.speed), w.notice || '']), '')];
}

function paidOf(whole) {
	if (!whole || !whole.paid_ms)
		return el('p', { class: 'soft' }, 'Nothing was paid yet.');
	return [facts([['device time', hours(whole.paid_ms)], ['cost', whole.paid_nano_usd ?
		dollars(whole.paid_nano_usd / 1e9) : '']]),
	bar(PARTS.map((p) => [p, whole[p + '_ms'], short(100 * whole[p + '_ms'] / whole.paid_ms) + ' %']))];
}

function jobWhy(why) {
	return [el('p', { class: 'why', id: 'why' }, el('b', {}, why.code + ' '), why.text,
		why.more.map((m) => el('span', { class: 'soft' }, ' ' + m))),
	table(['type', '#devices', '#free', '#steps/s', '#share', '#received s', '#due s'], why.types.map((t) => [t.type,
		t.devices, t.free, short(t.steps_s), short(t.share), short(t.received_s), short(t.due_s)]), '')];
}

/* Sections that are asked for, each as often as its answer came. */
function section(title, path, draw) {
	const box = el('section', {}, el('h3', {}, title), el('div', { class: 'soft' }, '...'));
	let busy = false, was = '';

	box.update = async () => {
		if (busy || !box.isConnected && was)
			return;
		busy = true;
		try {
			const answer = await get(path), text = JSON.stringify(answer);
			if (text !== was)
				box.lastChild.replaceWith(fill(el('div', {}), draw(answer)));
			was = text;
		} catch (e) {
			if (!was)
				box.lastChild.replaceWith(el('div', { class: 'bad' }, e.message));
		}
		busy = false;
	};
	return box;
}

async function showJob(main, id) {
	const at = target('/v1/jobs/{job}', id);
	const first = await get(at), j0 = store.jobs.get(first.id) || first;
	let whole = first;
	const head = el('div', {}), acts = el('div', {}), parts = [];
	const add = (has, title, path, draw) => api.has('get', has) && parts.push(section(title, path, draw));

	store.jobs.set(first.id, { ...j0, ...Object.fromEntries(Object.keys(j0).map((k) => [k, first[k]])) });
	add('/v1/jobs/{job}/why', 'Why', at + '/why?policy=false', jobWhy);
	add('/v1/jobs/{job}/metrics', 'Curve', at + '/metrics', (a) => jobCurve(a.points));
	add('/v1/jobs/{job}/run', 'Workers', at + '/run', jobWorkers);
	parts.push(section('Ledger', at, (a) => { whole = a; changed(); return paidOf(a); }));
	add('/v1/events/past', 'What happened', '/v1/events/past?limit=1000&job=' + first.id, (a) =>
		table(['when', 'what', ''], a.events.slice(-50).reverse().map((e) => [new Date(e.t * 1000).toLocaleString(), e.kind,
			e.text]), 'Nothing yet.'));
	fill(main, el('h2', {}, first.name, el('span', { class: 'soft' }, '  job ' + first.id)), head,
		acts, parts, el('section', {}, el('h3', {}, 'Timeline'),
		el('p', { class: 'soft' }, 'What each worker did, instant by instant; the first command writes a page.'),
		el('pre', {}, 'heddle trace open ' + (first.run || '') + '\nheddle trace analyze ' + (first.run || ''))));
	let state = first.state, due = 0, offered = '';
	return () => {
		const j = store.jobs.get(first.id), now = performance.now();
		const offers = [j.state, j.priority, j.scale].join(' ');
		if (j.state !== state)
			due = 0;
		/* what is about to be changed stays as it is typed */
		if (j.state !== state || (offers !== offered && !acts.contains(document.activeElement))) {
			fill(clear(acts), jobActions(j));
			offered = offers;
		}
		fill(clear(head), jobFacts(j, whole), j.why ? el('p', { class: 'why' }, j.why) : null);
		state = j.state;
		if (now < due)
			return;
		due = now + (OVER.includes(j.state) ? 1e9 : 1900);
		for (const p of parts)
			p.update();
	};
}
