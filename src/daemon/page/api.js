/* Requests to where the page came from, with the token; it is kept for as long as the tab is open. */
const api = { token: '', paths: {}, denied: null };

api.has = (method, path) => !!(api.paths[path] && api.paths[path][method.toLowerCase()]);

function takeToken() {
	const at = location.hash.match(/^#token=([0-9a-f]{64})$/);

	if (at) {
		sessionStorage.setItem('heddle token', at[1]);
		history.replaceState(null, '', location.pathname);
	}
	api.token = sessionStorage.getItem('heddle token') || '';
}

const headers = () => (api.token ? { Authorization: 'Bearer ' + api.token } : {});

async function request(method, path, body) {
	const options = { method, headers: headers(), cache: 'no-store', credentials: 'omit' };

	if (body !== undefined) {
		options.headers['Content-Type'] = 'application/json';
		options.body = JSON.stringify(body);
	}
	let answer;
	try {
		answer = await fetch(path, options);
	} catch (e) {
		throw new Error('The scheduler does not answer. It may have ended: the page goes on as soon as it is back.');
	}
	if (answer.status === 401 && api.denied)
		api.denied();
	const json = await answer.json().catch(() => ({}));
	if (!answer.ok)
		throw Object.assign(new Error(json.error || 'status ' + answer.status), { status: answer.status });
	return json;
}

const get = (path) => request('GET', path);
const post = (path, body) => request('POST', path, body);

/* A name in a path: the server takes letters, digits and -._~ alone, and no name has others. */
const target = (path, name) => path.replace(/\{[a-z]+\}/, String(name).replace(/[^A-Za-z0-9._~-]/g, ''));

/* Server-Sent Events over a request with the token, which an EventSource cannot have. `each` gets an object; `beat`
 * is called whenever bytes come, the server's signs of life among them. */
async function stream(path, each, beat, signal) {
	const answer = await fetch(path, { headers: headers(), cache: 'no-store', credentials: 'omit', signal });

	if (!answer.ok)
		throw Object.assign(new Error('status ' + answer.status), { status: answer.status });
	const reader = answer.body.getReader(), text = new TextDecoder();
	let rest = '';
	for (;;) {
		const { value, done } = await reader.read();
		if (done)
			return;
		beat();
		const parts = (rest + text.decode(value, { stream: true })).split('\n\n');
		rest = parts.pop();
		for (const part of parts) {
			const data = part.split('\n').find((line) => line.startsWith('data: '));
			if (data)
				each(JSON.parse(data.slice(6)));
		}
	}
}
