/* The list of jobs: only the rows in view are elements. */
const RANK = ['running', 'starting', 'draining', 'queued', 'failed', 'timeout', 'done', 'cancelled'];
const rank = (j) => RANK.indexOf(j.state);
const ORDERS = {
	active: ['those that run first', (a, b) => rank(a) - rank(b) || b.id - a.id],
	newest: ['newest first', (a, b) => b.id - a.id],
	oldest: ['oldest first', (a, b) => a.id - b.id],
	name: ['by name', (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.id - b.id)],
	user: ['by user', (a, b) => (a.user < b.user ? -1 : a.user > b.user ? 1 : a.id - b.id)],
	priority: ['by priority', (a, b) => b.priority - a.priority || a.id - b.id],
};
const list = { text: '', state: '', order: 'active', rows: [], chosen: 0, from: -1, to: -1 };

function matches(j) {
	const text = list.text;

	return (!list.state || j.state === list.state) && (!text || j.name.toLowerCase().includes(text) ||
		j.user.toLowerCase().includes(text) || (j.partition || '') === text || (j.account || '') === text || j.state.includes(text) || String(j.id) === text ||
		j.type.toLowerCase().includes(text) || j.why.toLowerCase().includes(text));
}

const rowHeight = () => parseInt(getComputedStyle(document.documentElement).getPropertyValue('--row'), 10);

function jobRow(j, at, height) {
	const part = j.steps ? j.step / j.steps : 0;
	const row = el('div', { class: 'job', role: 'option', id: 'job' + j.id, 'data-id': j.id,
		'aria-selected': String(j.id === list.chosen) },
		el('span', { class: 'id soft' }, j.id), el('span', { class: 'name', title: j.name }, j.name),
		el('span', { class: 'user soft' }, j.user), el('span', { class: 'state ' + j.state }, j.state),
		el('span', { class: 'steps' }, el('progress', { value: part, max: 1, 'aria-label': 'steps done' }), steps(j)),
		el('span', { class: 'priority' }, short(j.priority)),
		el('span', { class: 'devices' }, j.devices_n ? j.devices_n + ' of ' + j.scale + ' ' + j.type : 'wants ' + j.scale),
		el('span', { class: 'text soft', title: j.why }, j.why || (j.rate > 0 ? short(j.rate) + ' steps/s' : '')));

	row.style.top = at * height + 'px';
	return row;
}

function drawRows() {
	const box = $('list');

	if (!box)
		return;
	const height = rowHeight(), from = Math.max(0, Math.floor(box.scrollTop / height) - 8);
	const to = Math.min(list.rows.length, Math.ceil((box.scrollTop + box.clientHeight) / height) + 8);
	$('space').style.height = list.rows.length * height + 'px';
	fill(clear($('space')), list.rows.slice(from, to).map((j, i) => jobRow(j, from + i, height)));
	store.visible = list.rows.slice(from, to).map((j) => j.id);
	box.setAttribute('aria-activedescendant', list.chosen ? 'job' + list.chosen : '');
	$('found').textContent = (list.rows.length === store.jobs.size ? plural(store.jobs.size, 'job') :
		list.rows.length + ' of ' + plural(store.jobs.size, 'job')) + (store.whole ? '' : ' ...');
	$('none').hidden = list.rows.length > 0 || !store.whole;
}

function sortRows() {
	list.rows = [...store.jobs.values()].filter(matches).sort(ORDERS[list.order][1]);
	drawRows();
}

function choose(id) {
	const at = list.rows.findIndex((j) => j.id === id), box = $('list'), height = rowHeight();

	if (at < 0)
		return;
	list.chosen = id;
	if (at * height < box.scrollTop)
		box.scrollTop = at * height;
	else if ((at + 1) * height > box.scrollTop + box.clientHeight)
		box.scrollTop = (at + 1) * height - box.clientHeight;
	drawRows();
}

function step(by) {
	const at = list.rows.findIndex((j) => j.id === list.chosen);
	const to = at < 0 ? 0 : Math.max(0, Math.min(list.rows.length - 1, at + by));

	if (list.rows.length)
		choose(list.rows[to].id);
}

const open = (id) => { location.hash = '#/job/' + id; };

function showList(main) {
	const select = (id, label, options, value, change) => el('select', { id, 'aria-label': label, onchange: change },
		options.map(([v, text]) => el('option', { value: v, selected: v === value }, text)));
	const filter = el('input', { id: 'filter', type: 'search', placeholder: 'filter: name, user, state, type  ( / )',
		'aria-label': 'filter', autocomplete: 'off', spellcheck: 'false', value: list.text,
		oninput: (e) => { list.text = e.target.value.trim().toLowerCase(); $('list').scrollTop = 0; sortRows(); } });
	const box = el('div', { id: 'list', role: 'listbox', tabindex: 0, 'aria-label': 'jobs', onscroll: drawRows,
		onclick: (e) => { const row = e.target.closest('.job'); if (row) { list.chosen = Number(row.dataset.id);
			open(list.chosen); } } }, el('div', { id: 'space' }));

	main.classList.add('fixed');
	fill(main, el('div', { id: 'filters' }, filter,
		select('state', 'state', [['', 'any state'], ...RANK.map((s) => [s, s])], list.state,
			(e) => { list.state = e.target.value; $('list').scrollTop = 0; sortRows(); }),
		select('order', 'order', Object.entries(ORDERS).map(([k, o]) => [k, o[0]]), list.order,
			(e) => { list.order = e.target.value; $('list').scrollTop = 0; sortRows(); }),
		el('span', { id: 'found', class: 'soft num' })),
		el('div', { id: 'heads', 'aria-hidden': 'true' }, ['job', 'name', 'user', 'state', 'steps', 'priority',
			'devices', 'why'].map((h) => el('span', {}, h))), box,
		el('p', { id: 'none', class: 'soft', hidden: true }, 'No job is like that.'));
	sortRows();
	return sortRows;
}
