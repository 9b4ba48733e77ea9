/* Views by the part of the address behind '#', keys, and the beginning. */
const VIEWS = [['jobs', 'Jobs', showList, '/v1/events'], ['devices', 'Devices', showDevices, '/v1/devices/history'],
	['waiting', 'Waiting', showWaiting, '/v1/waiting'], ['prices', 'Prices', showPrices, '/v1/ledger'],
	['sweeps', 'Sweeps', showSweeps, '/v1/sweeps'], ['submit', 'Submit', showSubmit, '/v1/jobs']];
let shown = 0;

const offered = () => VIEWS.filter((v) => (v[0] === 'submit' ? api.has('post', v[3]) : api.has('get', v[3])));

function drawHead() {
	const s = store.status;

	if (!s)
		return;
	fill(clear($('where')), s.dir + '  ' + s.policy + ', rounds of ' + short(s.round_s) + ' s');
	fill(clear($('counts')), Object.entries(s.counts).filter(([, n]) => n).map(([k, n]) => el('span', {},
		el('b', { class: k }, n), ' ' + k)), s.types.map((t) => el('span', {}, t.type + ' ' + t.busy + ' of ' + t.devices)));
	$('late').hidden = !s.late;
	fill(clear($('late')), s.late || '');
}

async function route() {
	const [, view, id] = (location.hash || '#/jobs').split('/'), mine = ++shown, main = $('main');
	const one = VIEWS.find((v) => v[0] === view && offered().includes(v));

	for (const a of $('tabs').children)
		a[a.dataset.view === view ? 'setAttribute' : 'removeAttribute']('aria-current', 'page');
	store.listeners.clear();
	store.listeners.add(drawHead);
	/* made beside what is shown, which stays until then; the list measures itself, so it is made in place */
	const room = el('div', {}), inPlace = one && one[0] === 'jobs', into = inPlace ? main : room;
	if (inPlace)
		clear(main);
	try {
		const update = one ? await one[2](into, decodeURIComponent(id || '')) : await showJob(into, view === 'job' ? decodeURIComponent(id || '') : 1);
		if (mine !== shown)
			return;
		if (!inPlace) {
			main.replaceChildren(...room.childNodes);
			main.classList.remove('fixed');
			main.scrollTop = 0;
		}
		store.listeners.add(update);
		update();
	} catch (e) {
		if (mine === shown)
			fill(clear(main), el('p', { class: 'bad' }, e.message));
	}
	window.hdPage.view = view;
	changed();
}

const KEYS = {
	j: () => step(1), ArrowDown: () => step(1), k: () => step(-1), ArrowUp: () => step(-1),
	PageDown: () => step(10), PageUp: () => step(-10), Enter: () => list.chosen && open(list.chosen),
	'/': () => { $('filter').focus(); $('filter').select(); },
};

function onKey(e) {
	const typing = e.target.closest('input, textarea, select'), inList = !!$('list');

	if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector('dialog[open]'))
		return;
	if (e.key === 'Escape') {
		if (typing)
			typing.blur();
		else if (!inList && offered().length)
			location.hash = '#/jobs';
	} else if (typing && (e.target.id !== 'filter' || !['Enter', 'ArrowDown', 'ArrowUp'].includes(e.key))) {
		return;
	} else if (typing && e.key === 'Enter') {
		e.target.blur();
		step(0);
	} else if (e.key === '?') {
		$('keys').showModal();
	} else if (/^[1-9]$/.test(e.key) && offered()[Number(e.key) - 1]) {
		location.hash = '#/' + offered()[Number(e.key) - 1][0];
	} else if (inList && KEYS[e.key] && !e.target.closest('button, a')) {
		KEYS[e.key]();
	} else {
		return;
	}
	e.preventDefault();
}

/* Asked before the first request, so that none is refused. */
function askToken(denied) {
	$('denied').hidden = !denied;
	$('gate').showModal();
	return new Promise((done) => $('gate').addEventListener('close', () => {
		api.token = $('token').value.trim();
		sessionStorage.setItem('heddle token', api.token);
		$('token').value = '';
		done();
	}, { once: true }));
}

async function begin() {
	takeToken();
	if (!api.token)
		await askToken(false);
	for (let good = false; !good;)
		try {
			api.paths = (await get('/v1/schema')).paths;
			if (api.has('get', '/v1/events'))
				await beginEvents();
			await loadStatus();
			good = true;
		} catch (e) {
			if (e.status === 401) {
				await askToken(true);
			} else {
				fill(clear($('main')), el('p', { class: 'bad' }, e.message + ' It is asked again.'));
				alive(false);
				await new Promise((done) => setTimeout(done, 2000));
			}
		}
	alive(true);
	const first = loadJobs();
	if (offered().length) {
		fill(clear($('tabs')), offered().map(([view, text]) => el('a', { href: '#/' + view, 'data-view': view }, text)));
		$('tabs').hidden = false;
	}
	await route();
	window.hdPage.ready = performance.now();
	await first.catch(() => alive(false));
	window.hdPage.whole = performance.now();
	/* a token that is refused from now on: the scheduler was started again */
	api.denied = () => { api.denied = null; askToken(true).then(() => location.reload()); };
	if (api.has('get', '/v1/events'))
		follow();
	poll();
}

window.hdPage = { ready: 0, whole: 0, view: '', store, shared, samplesAfter, addSamples };
addEventListener('hashchange', route);
addEventListener('keydown', onKey);
addEventListener('resize', () => { drawRows(); });
$('help').addEventListener('click', () => $('keys').showModal());
begin();
