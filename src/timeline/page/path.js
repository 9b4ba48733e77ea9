/* The critical path of a step, as src/timeline/analyze/path.h found it: segments without gaps from the step's
 * begin to its end, each of a lane, with what it was for; most are of an event. */

/* Of each step's number its segments, ascending in time. */
function readPaths(t, path) {
	t.paths = new Map();
	for (let k = 0, at = t.path_t0; k < path.since.length; k++) {
		const number = path.step[k], list = t.paths.get(number) || [];
		at += path.since[k];
		list.push({ i: path.place[k] - 1, lane: path.lane[k], part: path.part[k], from: at,
			to: at + path.length[k] });
		t.paths.set(number, list);
	}
}

/* Of the chosen step; none: it was not committed, or is not here. */
function criticalOf(t) {
	const step = t.bySteps[t.step_now];
	return (step && t.paths.get(step.number)) || [];
}

function lengthOf(path) { return path.reduce((sum, s) => sum + s.to - s.from, 0); }

/* "critical path of step 3: 12.1 ms: compute 90 %, wire 5 %, ..." */
function sayPath(t) {
	const path = criticalOf(t), all = lengthOf(path), by = new Map(), step = t.bySteps[t.step_now];
	const name = step ? 'step ' + step.number : 'what has no steps';
	if (!path.length)
		return 'no critical path of ' + name + (step && !step.committed ? ': it was dropped' : ' is here');
	for (const s of path)
		by.set(s.part, (by.get(s.part) || 0) + s.to - s.from);
	const shares = [...by].filter(([, ns]) => ns >= 0.005 * all).sort((p, q) => q[1] - p[1]);
	return 'critical path of ' + name + ': ' + sayTime(all) + ': ' + shares.map(([part, ns]) =>
		S.head.parts[part] + ' ' + Math.round(100 * ns / all) + ' %').join(', ');
}

/* Where a segment is drawn: in the row of its event, else in the first of its lane; null: folded. */
function placeOfSegment(t, s) {
	if (s.i >= 0)
		return placeOf(t, s.i);
	const line = S.lines.find((l) => l.what === 'lane' && l.t === t && l.lane.index === s.lane);
	return line ? rowPlace(line, 0) : null;
}
