/* Elements, and nothing else: what is shown is always a text node, so no name of a job, a user or a device is
 * markup. The page's policy refuses every other way. */
const $ = (id) => document.getElementById(id);

/* el('td', { class: 'n' }, 'text', [elements]): attributes, but on*: listeners, and checked, value: properties */
function el(tag, attributes, ...children) {
	const e = tag.startsWith('svg:') ? document.createElementNS('http://www.w3.org/2000/svg', tag.slice(4)) :
		document.createElement(tag);
	for (const [key, value] of Object.entries(attributes || {}))
		if (value === null || value === undefined || value === false)
			continue;
		else if (typeof value === 'function')
			e.addEventListener(key.slice(2), value);
		else if (key === 'value' || key === 'disabled' || key === 'checked')
			e[key] = value;
		else
			e.setAttribute(key, value === true ? '' : String(value));
	fill(e, ...children);
	return e;
}

function fill(e, ...children) {
	for (const child of children.flat(3))
		if (child !== null && child !== undefined && child !== false)
			e.append(child instanceof Node ? child : document.createTextNode(String(child)));
	return e;
}

const clear = (e) => { e.replaceChildren(); return e; };

/* heads: texts, those that begin with '#' are numbers; rows: lists of texts or elements */
function table(heads, rows, empty) {
	const isNumber = heads.map((h) => h.startsWith('#'));
	const cell = (tag, c, i) => el(tag, { class: isNumber[i] ? 'n' : null }, c);

	if (!rows.length)
		return el('p', { class: 'soft' }, empty);
	return el('div', { class: 'scroll' }, el('table', {},
		el('thead', {}, el('tr', {}, heads.map((h, i) => cell('th', h.replace('#', ''), i)))),
		el('tbody', {}, rows.map((r) => el('tr', {}, r.map((c, i) => cell('td', c, i)))))));
}

let saying = 0;
function say(text, bad) {
	const box = $('said');

	fill(clear(box), text);
	box.classList.toggle('bad', !!bad);
	box.hidden = false;
	clearTimeout(saying);
	saying = setTimeout(() => { box.hidden = true; }, bad ? 12000 : 4000);
}

/* Does `work`; what it throws is said. The button waits meanwhile. */
async function attempt(button, work) {
	if (button)
		button.disabled = true;
	try {
		return await work();
	} catch (e) {
		say(e.message, true);
		return null;
	} finally {
		if (button)
			button.disabled = false;
	}
}

function sure(what, text) {
	const box = $('sure');

	fill(clear($('sure_what')), what);
	fill(clear($('sure_text')), text);
	box.returnValue = 'no';
	box.showModal();
	$('sure_no').focus();
	return new Promise((done) => box.addEventListener('close', () => done(box.returnValue === 'yes'), { once: true }));
}
