/* Which jobs wait and why; and what would be if something were different. */
function whatIf(types, policies) {
	const field = (label, id, more) => el('label', {}, label, el('input', { id, ...more }));
	const more = types.map((t) => ({ type: t.type, input: el('input', { type: 'number', step: 1, id: 'add_' + t.type,
		placeholder: '0' }) }));
	const out = el('div', { id: 'then', 'aria-live': 'polite' });
	const ask = () => {
		const body = {}, number = (id) => ($(id).value === '' ? null : Number($(id).value));
		const job = $('if_job').value.trim(), without = $('if_without').value.trim();
		const named = (text) => (/^[0-9]+$/.test(text) ? Number(text) : text);
		if (job)
			body.job = named(job);
		if (without)
			body.without = named(without);
		for (const key of ['priority', 'scale'])
			if (number('if_' + key) !== null)
				body[key] = number('if_' + key);
		for (const m of more)
			if (m.input.value !== '')
				body.add = { ...body.add, [m.type]: Number(m.input.value) };
		if ($('if_policy').value)
			body.policy = $('if_policy').value;
		return body;
	};
	const rows = (a) => a.affected.map((j) => [el('a', { href: '#/job/' + j.id }, j.name), short(j.share),
		short(j.share_then), short(j.steps_s), short(j.steps_s_then), j.left_s < 0 ? '' : duration(j.left_s),
		j.left_s_then < 0 ? '' : duration(j.left_s_then)]);

	return [el('form', { onsubmit: (e) => {
		e.preventDefault();
		attempt(e.submitter, async () => {
			const a = await post('/v1/whatif', ask());
			fill(clear(out), el('p', { class: 'soft' }, 'Of ' + plural(a.jobs, 'job') + ', under ' + a.policy_then + ':'),
				table(['job', '#share', '#then', '#steps/s', '#then', '#left', '#then'], rows(a),
					'Nothing would be different.'));
		});
	} }, el('div', { class: 'form' }, field('job (number or name)', 'if_job'),
		field('its priority', 'if_priority', { type: 'number', step: 'any', min: 0 }),
		field('its devices at once', 'if_scale', { type: 'number', step: 1, min: 1 }),
		field('without the job', 'if_without'),
		more.map((m) => el('label', {}, 'more ' + m.type + ' (fewer: below 0)', m.input)),
		el('label', {}, 'policy', el('select', { id: 'if_policy' }, el('option', { value: '' }, 'as now'),
			policies.filter((p) => p.built).map((p) => el('option', { value: p.name, title: p.about }, p.name))))),
	el('p', {}, el('button', { class: 'main', id: 'if_ask' }, 'What if?'))), out];
}

async function showWaiting(main) {
	const rows = el('div', { id: 'waiting' });
	const [policies] = await Promise.all([get('/v1/policies')]);
	let pages = [], due = 0, busy = false;
	const line = (j) => [el('a', { href: '#/job/' + j.id }, j.name), j.user, short(j.priority), j.scale,
		ago(j.submitted_s), [el('b', {}, j.code), ' ' + j.text]];
	const draw = (more) => {
		const all = pages.flatMap((p) => p.jobs);
		fill(clear(rows), table(['job', 'user', '#priority', '#devices', 'came', 'why'], all.map(line), 'No job waits.'),
			more && el('p', {}, el('button', { id: 'more', onclick: (e) => attempt(e.target, async () => {
				pages.push(await get('/v1/waiting?after=' + all[all.length - 1].id));
				draw(pages[pages.length - 1].more);
			}) }, 'More')));
	};

	fill(main, el('h2', {}, 'Waiting'), rows, el('h3', {}, 'What if ...'),
		api.has('post', '/v1/whatif') && whatIf(store.status.types, policies.policies));
	return () => {
		if (performance.now() < due || busy || pages.length > 1)
			return;
		due = performance.now() + 2900;
		busy = true;
		get('/v1/waiting').then((p) => { pages = [p]; draw(p.more); }).catch(() => alive(false))
			.finally(() => { busy = false; });
	};
}
