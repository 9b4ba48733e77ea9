/* Devices by type, over time and one by one, and what puts them out of service. */

/* The server thins what it has as time goes on; here more would come than it has. Then all is asked for again. */
const SAMPLES_MORE = 4096;
const samplesAfter = (s) => (s.all.length && s.all.length <= s.whole + SAMPLES_MORE ? s.all[s.all.length - 1].at_s : 0);

function addSamples(s, after, came) {
	s.all = after ? s.all.concat(came) : came;
	s.whole = after ? s.whole : came.length;
}

const most = (n) => (n < 0 ? '' : n);          /* -1: no limit */

async function showDevices(main) {
	const plots = el('div', { class: 'plots', id: 'plots' }), rows = el('div', {}), slow = el('div', {}),
		lent = el('div', { id: 'lent' }), accounts = el('div', { id: 'accounts' });
	const samples = { all: [], whole: 0 };
	let due = 0, busy = false;

	fill(main, el('h2', {}, 'Devices'), plots, lent, slow, accounts, el('h3', {}, 'One by one'), rows,
		api.has('post', '/v1/stop') && el('section', {}, el('h3', {}, 'End of the scheduler'),
			el('p', { class: 'soft' }, 'All devices go out of service, jobs commit and leave, and the scheduler ends; ' +
				'started again with its folder it goes on with them.'),
			el('button', { class: 'danger', id: 'drain', onclick: async (e) => {
				const button = e.target;
				if (await sure('Drain and end?', 'Jobs commit and leave their devices; then the scheduler ends.'))
					attempt(button, async () => { await post('/v1/stop', { drain: true }); say('It drains.'); });
			} }, 'Drain and end')));
	const draw = async () => {
		const after = samplesAfter(samples);
		const [history, pools] = await Promise.all([get('/v1/devices/history?after_s=' + after), get('/v1/pools')]);
		addSamples(samples, after, history.samples);
		fill(clear(plots), pools.pools.map((p) => {
			const of = samples.all.filter((s) => s.type === p.type);
			return of.length > 1 && areas(p.type, of.map((s) => ({ at: s.at_s - history.now_s,
				values: [s.busy, s.free, s.lost] })), ['busy', 'free', 'lost'], ['busy', 'free', 'out of service'],
				(v) => (v > -0.5 ? 'now' : '-' + duration(-v)));
		}));
		fill(clear(lent), (store.status.lent || []).length ? table(['nodes of', '#wanted', '#run', '#wait', 'why'],
			store.status.lent.map((l) => [l.type, l.wanted, l.running, l.waiting, l.why]), '') : '');
		fill(clear(accounts), (store.status.accounts || []).length ? [el('h3', {}, 'Accounts'),
			table(['account', '#weight', '#devices', '#of', '#running', '#of', '#waiting', '#of'],
				store.status.accounts.map((a) => ['\u2003'.repeat(a.level) + a.name, short(a.weight), a.devices, most(a.devices_most),
					a.running, most(a.running_most), a.waiting, most(a.queued_most)]), '')] : '');
		fill(clear(slow), (store.status.slow || []).map((h) => el('p', { class: 'why' }, h.text)));
		fill(clear(rows), table(['device', 'on', 'state', 'job', 'kept', ''], pools.devices.map((d) => [d.name, d.on, d.state,
			d.job ? el('a', { href: '#/job/' + d.job }, d.job) : '', d.window ? d.window + ': ' + d.kept : '',
			api.has('post', '/v1/devices/{device}') && el('button', { type: 'button', onclick: (e) =>
				attempt(e.target, async () => {
					const out = d.state === 'out';
					await post(target('/v1/devices/{device}', d.name), { usable: out });
					say(d.name + (out ? ' is back.' : ' goes out of service.'));
					due = 0;
					changed();
				}) }, d.state === 'out' ? 'Bring back' : 'Take out of service')]), 'There are no devices.'));
	};
	return () => {
		if (performance.now() < due || busy)
			return;
		due = performance.now() + 1900;
		busy = true;
		draw().catch(() => alive(false)).finally(() => { busy = false; });
	};
}
