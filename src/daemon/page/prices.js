/* What devices cost, what they cost now, and what jobs were paid for. */
async function showPrices(main) {
	const prices = el('div', {}), ledger = el('div', { id: 'ledger' });
	let due = 0, busy = false;

	fill(main, el('h2', {}, 'Prices'), prices, el('h3', {}, 'Ledger of the jobs that hold devices'), ledger);
	return () => {
		const types = store.status.types, busyNow = types.reduce((a, t) => a + t.busy * t.price_usd_h, 0);
		fill(clear(prices), table(['type', '#devices', '#busy', '#$ a device and hour', '#$ an hour now'],
			types.map((t) => [t.type, t.devices, t.busy, short(t.price_usd_h), short(t.busy * t.price_usd_h)]), ''),
			el('p', { class: 'num' }, 'Busy devices cost ' + dollars(busyNow) + ' an hour.'));
		if (performance.now() < due || busy)
			return;
		due = performance.now() + 2900;
		busy = true;
		get('/v1/ledger').then((a) => {
			const sum = PARTS.map((p) => [p, a.jobs.reduce((s, j) => s + j[p + '_ms'], 0)]);
			const all = sum.reduce((s, p) => s + p[1], 0);
			fill(clear(ledger), all ? bar(sum.map(([p, ms]) => [p, ms, short(100 * ms / all) + ' %'])) : null,
				table(['job', 'user', '#device time', '#useful', '#cost'], a.jobs.map((j) => [
					el('a', { href: '#/job/' + j.id }, j.name), j.user, hours(j.paid_ms),
					j.paid_ms ? short(100 * j.useful_ms / j.paid_ms) + ' %' : '',
					j.paid_nano_usd ? dollars(j.paid_nano_usd / 1e9) : '']), 'No job holds a device.'));
		}).catch(() => alive(false)).finally(() => { busy = false; });
	};
}
