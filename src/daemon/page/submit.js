/* A job file and what an order says besides; the fields are those that the schema has. */
const SUBMIT_FIELDS = [['name', 'text'], ['priority', 'number'], ['scale', 'number'], ['min', 'number'], ['max', 'number'],
	['deadline_s', 'number'], ['user', 'text'], ['account', 'text']];

async function showSubmit(main) {
	const route_ = api.paths['/v1/jobs'].post;
	const has = route_.requestBody.content['application/json'].schema.properties;
	const fields = SUBMIT_FIELDS.filter(([name]) => has[name]);
	let key = '', sent = '';
	const read = () => {
		const body = { job: $('order_job').value, folder: $('order_folder').value.trim() };
		const set = $('order_set').value.split('\n').map((l) => l.trim()).filter((l) => l);
		if (set.length)
			body.set = set;
		for (const [name, type] of fields)
			if ($('order_' + name).value !== '')
				body[name] = type === 'number' ? Number($('order_' + name).value) : $('order_' + name).value;
		/* as long as the form says the same it is the same order: two clicks, or one whose answer was lost */
		if (JSON.stringify(body) !== sent)
			key = crypto.getRandomValues(new Uint32Array(4)).reduce((a, v) => a + v.toString(16).padStart(8, '0'), '');
		sent = JSON.stringify(body);
		return { ...body, key };
	};
	const file = el('input', { type: 'file', 'aria-label': 'read a job file', accept: '.yaml,.yml,.json,.txt',
		onchange: async (e) => { if (e.target.files[0]) $('order_job').value = await e.target.files[0].text(); } });

	fill(main, el('h2', {}, 'Submit'), el('form', { onsubmit: (e) => {
		e.preventDefault();
		attempt(e.submitter, async () => {
			const a = await post('/v1/jobs', read());
			say('Job ' + a.id + ' (' + a.name + ') is ' + a.state + '.' + (a.why ? ' ' + a.why : ''), !!a.why);
			await refresh(new Set([a.id]));
			open(a.id);
		});
	} }, el('div', { class: 'form' },
		el('label', { class: 'wide' }, 'job file', el('textarea', { id: 'order_job', rows: 12, spellcheck: 'false',
			required: true })), el('label', { class: 'wide' }, 'or read it from a file', file),
		el('label', { class: 'wide' }, 'folder (absolute: where its relative paths begin)', el('input', { id: 'order_folder',
			required: true, placeholder: '/home/me/project' })),
		fields.map(([name, type]) => el('label', { title: has[name].description }, name, el('input', { id: 'order_' + name,
			type, step: type === 'number' ? 'any' : null }))),
		el('label', { class: 'wide' }, 'keys over the file, KEY=VALUE a line', el('textarea', { id: 'order_set', rows: 2,
			spellcheck: 'false' }))), el('p', {}, el('button', { class: 'main', id: 'order' }, 'Submit'))));
	return () => {};
}
