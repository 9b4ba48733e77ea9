/* The critical path of a step: walked back from the event that ends last.
 *
 * What an event waited for is, of
 *   the lane predecessor: of its lane, the event of greatest end that is not after its begin;
 *   the source of the flow: of a receive, its send; of a send, what its process' devices did before; of work
 *   after a wait for a transfer or for data, the receive or read that ended the wait,
 * the one that ends later (equal ends: the flow's, then that of the smaller lane). The gap between them is
 * scheduling. A segment is [begin, end] of what the path spends there; segments and gaps add up to the time
 * from the step's begin to its end. Waits are no work: they are gaps, or hidden by what ended them. */

function works(t, i) {
	return t.kind[i] === KIND.OP || isTransfer(t.kind[i]);
}

/* Of each lane the work of the step by end, and its waits by end. */
function gather(t, from, to) {
	const lanes = t.lanes.map(() => ({ work: [], waits: [] }));
	for (const lane of t.lanes) {
		for (const row of lane.rows) {
			const base = row.levels[0];
			for (let k = search(row.latest, from); k < base.n && base.t0[k] <= to; k++) {
				const i = row.events[k];
				if (base.t1[k] < from || base.t1[k] > to)
					continue;
				if (works(t, i))
					lanes[lane.index].work.push(i);
				else if (t.kind[i] === KIND.WAIT)
					lanes[lane.index].waits.push(i);
			}
		}
		for (const list of [lanes[lane.index].work, lanes[lane.index].waits])
			list.sort((a, b) => t.t1[a] - t.t1[b] || a - b);
	}
	return lanes;
}

/* Of a list by end: the last that ends at or before `at` and passes; -1: none. */
function lastEnd(t, list, at, passes) {
	let low = 0, high = list.length;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (t.t1[list[middle]] <= at)
			low = middle + 1;
		else
			high = middle;
	}
	for (let k = low - 1; k >= 0 && k > low - 4096; k--)
		if (!passes || passes(list[k]))
			return list[k];
	return -1;
}

function latestOf(t, lanes, at, isLane, passes) {
	let best = -1;
	t.lanes.forEach((lane, l) => {
		const i = isLane(lane) ? lastEnd(t, lanes[l].work, at, passes) : -1;
		if (i >= 0 && (best < 0 || t.t1[i] > t.t1[best]))
			best = i;
	});
	return best;
}

/* What ended the wait just before work i; -1: it did not wait. */
function afterWait(t, lanes, i) {
	const wait = lastEnd(t, lanes[t.lane[i]].waits, t.t0[i]), before = lastEnd(t, lanes[t.lane[i]].work, t.t0[i]);
	if (wait < 0 || (before >= 0 && t.t0[wait] < t.t0[before]))
		return -1;
	const reason = t.arg[wait] % 256, what = Math.floor(t.arg[wait] / 256);
	const kind = reason === 1 ? KIND.RECV : reason === 2 ? KIND.READ : 0;
	const process = t.lanes[t.lane[i]].process;
	return kind ? latestOf(t, lanes, t.t1[wait], (lane) => lane.process === process,
		(k) => t.kind[k] === kind && t.instr[k] === what && t.t1[k] >= t.t0[wait]) : -1;
}

function sourceOf(t, lanes, i) {
	const process = t.lanes[t.lane[i]].process, k = t.transfer[i];
	if (t.kind[i] === KIND.SEND)
		return latestOf(t, lanes, t.t0[i], (lane) => lane.process === process && lane.kind === LANE.DEVICE);
	if (t.kind[i] === KIND.RECV)
		return k >= 0 && t.x.other[k] ? t.x.other[k] - 1 : -1;
	return t.kind[i] === KIND.OP ? afterWait(t, lanes, i) : -1;
}

/* Segments {i, from, to}, last first, and the sum of the gaps. */
function walkBack(t, from, to) {
	const lanes = gather(t, from, to), seen = new Set(), path = [];
	let now = latestOf(t, lanes, to, () => true), at = to, gaps = 0;
	while (now >= 0 && !seen.has(now) && at > from) {
		seen.add(now);
		const end = Math.min(at, t.t1[now]), flow = sourceOf(t, lanes, now);
		const sent = t.kind[now] === KIND.RECV && flow >= 0;
		/* what was posted before it was sent waits for the sender from there on */
		const begin = Math.max(from, sent ? Math.min(end, Math.max(t.t0[now], t.t1[flow])) : t.t0[now]);
		const lane = lastEnd(t, lanes[t.lane[now]].work, Math.min(begin, t.t0[now]), (k) => !seen.has(k));
		gaps += at - end;
		path.push({ i: now, from: begin, to: end });
		at = begin;
		now = flow >= 0 && (lane < 0 || sent || t.t1[flow] >= t.t1[lane]) ? flow : lane;
	}
	return { path, gaps: gaps + Math.max(0, at - from) };
}

function givenPath(t) {
	return { path: t.critical.map((i) => ({ i, from: t.t0[i], to: t.t1[i] })).reverse(), gaps: 0, given: true };
}

/* Of the chosen step of a timeline; kept until another is chosen. */
function criticalOf(t) {
	const step = t.bySteps[t.step_now];
	if (t.found && t.found.of === step)
		return t.found;
	t.found = t.critical.length ? givenPath(t) : walkBack(t, step ? step.begin : t.begin, step ? step.end : t.end);
	t.found.of = step;
	t.found.on = new Set(t.found.path.map((s) => s.i));
	t.found.sum = t.found.path.reduce((sum, s) => sum + s.to - s.from, 0);
	return t.found;
}

/* "critical path of step 3: 12.1 ms: forward 40 %, ..., gaps 5 %" */
function sayPath(t) {
	const found = criticalOf(t), by = new Map(), all = found.sum + found.gaps;
	if (!found.path.length)
		return 'no critical path: ' + (found.of ? 'step ' + found.of.number + ' has' : 'there are') +
			' no events here';
	for (const s of found.path)
		by.set(t.class[s.i], (by.get(t.class[s.i]) || 0) + s.to - s.from);
	const shares = [...by].sort((a, b) => b[1] - a[1]).map(([c, ns]) => [S.head.classes[c].text, ns]);
	if (found.gaps > 0)
		shares.push(['scheduling', found.gaps]);
	return (found.of ? 'critical path of step ' + found.of.number : 'critical path') + ': ' + sayTime(all) +
		(all > 0 ? ': ' + shares.map(([text, ns]) => text + ' ' + Math.round(100 * ns / all) + ' %').join(', ') :
			'');
}
