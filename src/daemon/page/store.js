/* What is known of the jobs: all of them, page by page, then by what the stream says of each. */
const PAGE_OF_JOBS = 1000, POLL_MS = 2000, GATHER_MS = 300, RANGE = 200, RANGES = 8;
const OVER = ['done', 'failed', 'timeout', 'cancelled'];
const store = { jobs: new Map(), status: null, last: 0, whole: false, visible: [], listeners: new Set(), dirty: new Set(),
	gathering: false, stopped: false, news: [] };

let drawing = false;
function changed() {
	if (drawing)
		return;
	drawing = true;
	requestAnimationFrame(() => {
		drawing = false;
		for (const listener of store.listeners)
			listener();
	});
}

function take(jobs) {
	for (const j of jobs)
		store.jobs.set(j.id, j);
	if (jobs.length)
		changed();
}

async function loadJobs() {
	let after = 0, more = true;

	while (more) {
		const page = await get('/v1/jobs?limit=' + PAGE_OF_JOBS + '&after=' + after);
		take(page.jobs);
		more = page.more && page.jobs.length > 0;
		after = page.jobs.length ? page.jobs[page.jobs.length - 1].id : after;
	}
	store.whole = true;
	changed();
}

async function loadStatus() {
	if (!api.has('get', '/v1/status'))
		return;
	store.status = await get('/v1/status');
	take(store.status.running);
	changed();
}

/* Jobs are asked for by ranges of ids: one request for many that changed together. */
function rangesOf(ids) {
	const all = [...ids].sort((a, b) => a - b), ranges = [];

	for (const id of all) {
		const at = ranges[ranges.length - 1];
		if (at && id < at.from + RANGE)
			at.n = id - at.from + 1;
		else
			ranges.push({ from: id, n: 1 });
	}
	return ranges;
}

async function refresh(ids) {
	const ranges = rangesOf(ids);

	for (const r of ranges.slice(0, RANGES))
		take((await get('/v1/jobs?after=' + (r.from - 1) + '&limit=' + r.n)).jobs);
	for (const r of ranges.slice(RANGES))
		for (let id = r.from; id < r.from + r.n; id++)
			if (ids.has(id))
				store.dirty.add(id);
	if (store.dirty.size)
		gather();
}

/* Together what changes within a moment. */
function gather() {
	if (store.gathering)
		return;
	store.gathering = true;
	setTimeout(async () => {
		const ids = store.dirty;
		store.gathering = false;
		store.dirty = new Set();
		try {
			await refresh(ids);
		} catch (e) {
			alive(false);
			ids.forEach((id) => store.dirty.add(id));
			setTimeout(gather, POLL_MS);
		}
	}, GATHER_MS);
}

function alive(yes) {
	fill(clear($('live')), yes ? '' : 'not connected');
	$('live').classList.toggle('bad', !yes);
}

function onEvent(event) {
	if (event.number <= store.last)
		return;                   // it came by another way already
	store.last = Math.max(store.last, event.number);
	store.news.push(event);
	if (store.news.length > 200)
		store.news.shift();
	if (event.job) {
		store.dirty.add(event.job);
		gather();
	}
	changed();
}

/* A browser has six connections to an origin, and a tab that keeps one for events leaves none to the seventh. So
 * one tab reads the stream, the one that has the lock, and passes on what comes; when it is closed another one
 * does. Tabs with another token see other events: lock and channel are of a token. */
const shared = { channel: null, leads: false, heard: 0, held: [] };
const SILENT_MS = 40000;          // the server speaks every 15 s

function pass(event) {
	onEvent(event);
	shared.channel.postMessage({ event });
}

/* Before jobs are loaded: what happens meanwhile is asked about again. */
async function beginEvents() {
	store.last = (await get('/v1/events/past?limit=1&after=2147483647')).last;
}

async function catchUp(each) {
	let page;

	do {
		page = await get('/v1/events/past?limit=1000&after=' + store.last);
		page.events.forEach(each);
	} while (page.events.length === 1000);
}

/* Where all streams are taken, what happened is asked for again and again. */
async function lead(until) {
	let wait = 1000;

	while (!until.aborted) {
		let most = 15000;
		try {
			await catchUp(pass);
			alive(true);
			await stream('/v1/events?after=' + store.last, (event) => { wait = 1000; pass(event); },
				() => shared.channel.postMessage({}), until);
		} catch (e) {
			if (e.status === 503 || e.status === 429)
				most = 2000;
			else if (!until.aborted)
				alive(false);
		}
		await new Promise((done) => setTimeout(done, wait));
		wait = Math.min(2 * wait, most);
	}
}

/* What comes before this tab knows all of before waits until it does. */
async function follow() {
	const name = 'heddle ' + api.token;

	if (!navigator.locks || !window.BroadcastChannel)
		return;                   // poll() asks for what happened
	shared.channel = new BroadcastChannel(name);
	shared.channel.onmessage = ({ data }) => {
		shared.heard = performance.now();
		if (data.event && shared.held)
			shared.held.push(data.event);
		else if (data.event)
			onEvent(data.event);
	};
	/* a page that is left may be kept by the browser as it is, with its lock, and come back */
	const join = async () => {
		const until = new AbortController();
		addEventListener('pagehide', () => until.abort(), { once: true });
		shared.held = [];
		navigator.locks.request(name, { signal: until.signal }, () => new Promise((leave) => {
			until.signal.addEventListener('abort', leave);
			shared.leads = true;
			lead(until.signal);
		})).catch(() => {}).finally(() => { shared.leads = false; });
		await catchUp(onEvent).catch(() => alive(false));
		shared.held.forEach(onEvent);
		shared.held = null;
	};
	addEventListener('pageshow', (e) => { if (e.persisted) join(); });
	await join();
}

/* What no event says: how far jobs that run are, in what is on the screen. */
async function poll() {
	for (;;) {
		await new Promise((done) => setTimeout(done, POLL_MS));
		if (document.hidden)
			continue;
		try {
			await loadStatus();
			const listed = new Set((store.status ? store.status.running : []).map((j) => j.id));
			const shown = store.visible.filter((id) => store.jobs.has(id) && !listed.has(id) &&
				!OVER.includes(store.jobs.get(id).state) && store.jobs.get(id).state !== 'queued');
			if (shown.length)
				await refresh(new Set(shown));
			else if (!store.status)
				await loadJobs();
			/* the tab that reads the stream may be held up by its browser */
			if (!shared.leads && api.has('get', '/v1/events') && performance.now() > shared.heard + SILENT_MS)
				await catchUp(onEvent);
			alive(true);
		} catch (e) {
			alive(false);
		}
	}
}
