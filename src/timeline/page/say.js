/* Words and numbers: what an event is, for tooltip, panel and table alike. */

const UNITS = [[1e9, 's'], [1e6, 'ms'], [1e3, '\u00b5s'], [1, 'ns']];

function sayTime(ns, digits) {
	const size = Math.abs(ns), unit = UNITS.find((u) => size >= u[0]) || UNITS[3];
	if (unit[0] === 1)
		return Math.round(ns) + ' ns';
	return Number((ns / unit[0]).toPrecision(digits || 4)) + ' ' + unit[1];
}

function sayBytes(n) {
	const names = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
	let i = 0;
	for (; n >= 1024 && i < names.length - 1; i++)
		n /= 1024;
	return (i ? Number(n.toPrecision(4)) : n) + ' ' + names[i];
}

function textIn(table, number) {
	const row = table.find((r) => r[0] === number);
	return row ? row[1] : 'unknown ' + number;
}

/* Of a counter: those of waits are ns. */
function sayValue(name, value) { return / wait$/.test(name) ? sayTime(value) : String(value); }

function isTransfer(kind) { return kind === KIND.SEND || kind === KIND.RECV || kind === KIND.READ; }

function nameOf(t, i) {
	if (t.kind[i] === KIND.WAIT)
		return 'wait: ' + textIn(S.head.waits, t.arg[i] % 256);
	return t.name[i] ? t.names[t.name[i]] : textIn(S.head.kinds, t.kind[i]);
}

/* Virtual node and stage: "3.1", "3", ".1" or nothing. */
function numberOf(t, i) {
	const vn = t.vn[i] ? String(t.vn[i] - 1) : '';
	return t.stage[i] ? vn + '.' + (t.stage[i] - 1) : vn;
}

function processOf(t, i) { return t.processes[t.lanes[t.lane[i]].process]; }

function whereOf(t, i) { return processOf(t, i).name + ', ' + t.lanes[t.lane[i]].name; }

function sayError(p) {
	return !p.aligned ? 'not aligned: times are its own' : p.error_ns ? '\u00b1 ' + sayTime(p.error_ns, 2) :
		'the reference';
}

function sayFlags(t, i) {
	return S.head.flags.filter((f) => f[0] !== 1 && t.flags[i] & f[0]).map((f) => f[1]).join(', ');
}

/* begin, gate, first byte, end: the four stamps of a transfer or read, from its begin. */
function sayStamps(t, i, k, put) {
	const gate = t.x.gate[k], first = t.x.first[k], all = t.t1[i] - t.t0[i];
	if (t.kind[i] !== KIND.RECV)
		put('gate released', '+ ' + sayTime(gate));
	put('first byte', '+ ' + sayTime(first));
	put(t.kind[i] === KIND.READ ? 'completed' : 'last byte', '+ ' + sayTime(all));
	if (all > first && t.arg[i])
		put('rate', sayBytes(t.arg[i] / (all - first) * 1e9) + '/s');
}

function sayTransfer(t, i, k, put) {
	sayStamps(t, i, k, put);
	if (t.x.peer[k])
		put('peer', t.processes[t.x.peer[k] - 1].name);
	if (t.x.other[k]) {
		const other = t.x.other[k] - 1, gap = t.t1[other] - t.t1[i];
		put('other end', whereOf(t, other) + ', ends ' + (gap < 0 ? '\u2212 ' : '+ ') + sayTime(Math.abs(gap)));
	}
	if (t.x.chunks[k])
		put('chunks', t.x.chunks[k] + (t.x.preempted[k] ? ', pre-empted ' + t.x.preempted[k] + ' times' : ''));
	if (t.x.priority[k] || t.x.primitive[k])
		put('class, primitive', t.x.priority[k] + ', ' + t.x.primitive[k]);
}

/* [label, text] of all that is known. */
function facts(t, i) {
	const out = [], put = (label, text) => out.push([label, text]), k = t.transfer[i], kind = t.kind[i];
	const took = t.t1[i] - t.t0[i], p = processOf(t, i), number = numberOf(t, i), flags = sayFlags(t, i);
	put('begin', sayTime(t.t0[i] - t.shift, 9));
	if (took)
		put('duration', sayTime(took));
	if (t.predicted[i])
		put('predicted', sayTime(t.predicted[i]) + ', measured / predicted ' +
			(took / t.predicted[i]).toPrecision(3));
	if (kind === KIND.OP || isTransfer(kind))
		put(kind === KIND.OP ? 'instruction' : kind === KIND.READ ? 'file' : 'transfer', String(t.instr[i]));
	if (number)
		put('virtual node . stage', number);
	if (t.step[i])
		put('step', String(t.step[i] - 1));
	if (kind === KIND.WAIT)
		put('for', textIn(S.head.waits, t.arg[i] % 256) + ' ' + Math.floor(t.arg[i] / 256));
	else if (kind === KIND.OP || isTransfer(kind))
		put('bytes', sayBytes(t.arg[i]));
	else if (kind === KIND.COUNTER)
		put('value', sayValue(nameOf(t, i), t.arg[i]));
	else if (kind === KIND.CLOCK)
		put('the other clock said', sayTime(t.arg[i], 12));
	else if (t.arg[i])
		put('value', String(t.arg[i]));
	if (k >= 0)
		sayTransfer(t, i, k, put);
	put('where', whereOf(t, i) + (p.host ? ' on ' + p.host : ''));
	put('clock', sayError(p));
	if (flags)
		put('marked', flags);
	return out;
}
