#include "timeline/import.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/pack.h"
#include "timeline/import_int.h"
#include "timeline/lives_int.h"

enum { NAME, CATEGORY, PID, TID };        /* texts of the event at hand */

/* An event as its members say it, in any order. */
struct members {
	char phase;
	bool timed, lasts, identified;
	int64_t ts, dur;
	uint64_t id;
	bool called;                      /* args.name, of metadata; it lies in args */
	uint32_t args_name, labels;
	uint64_t bytes;
	uint64_t value; bool valued;
	uint64_t gate_ns, first_ns;
	bool transfer;                    /* it has the stamps of one, as this program writes them */
	uint32_t vn, stage;
};

static enum hd_err damaged(const struct import *in, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_INPUT, "%s: byte %zu, in or after event %u: %s; this is no trace of events",
		in->file, (size_t)(in->scan.at - in->scan.begin), in->nevents,
		in->scan.why ? in->scan.why : "it ends in the middle");
}

/* pid, tid, id: whatever they are, as text. */
static bool read_any(struct import *in, struct hd_text *to)
{
	const char *text;
	size_t len;

	to->len = 0;
	if (hd_tl_scan_peek(&in->scan) == '"')
		return hd_tl_scan_string(&in->scan, to);
	if (!hd_tl_scan_number(&in->scan, &text, &len))
		return false;
	hd_text_put(to, text, len);
	return true;
}

static bool read_text(struct import *in, struct hd_text *to)
{
	to->len = 0;
	hd_text_put(to, "", 0);
	if (hd_tl_scan_peek(&in->scan) == '"')
		return hd_tl_scan_string(&in->scan, to);
	return hd_tl_scan_skip(&in->scan);
}

static bool read_time(struct import *in, int64_t *ns, bool *there)
{
	const char *text;
	char c = hd_tl_scan_peek(&in->scan);
	size_t len;

	if (c != '-' && (c < '0' || c > '9'))
		return hd_tl_scan_skip(&in->scan);
	if (!hd_tl_scan_number(&in->scan, &text, &len))
		return false;
	*there = hd_tl_scan_decimal(text, len, 3, ns);
	return true;
}

static bool read_count(struct import *in, uint64_t *count)
{
	bool there = false;
	int64_t v = 0;

	if (!read_time(in, &v, &there))
		return false;
	if (there && v >= 0)
		*count = (uint64_t)v / 1000;
	return true;
}

enum { BYTES, VN, STAGE, GATE, FIRST };
static const char *const numbers[] = { [BYTES] = "bytes", [VN] = "virtual node", [STAGE] = "stage",
	[GATE] = "gate_ns", [FIRST] = "first_byte_ns" };

static int number_of(const char *key)
{
	for (int i = 0; i < (int)(sizeof numbers / sizeof numbers[0]); i++)
		if (!strcmp(key, numbers[i]))
			return i;
	return -1;
}

/* The first number of all is a counter's. */
static void take_number(struct members *m, int which, uint64_t number)
{
	if (which == BYTES)
		m->bytes = number;
	else if (which == VN)
		m->vn = number < HD_TL_NONE ? (uint32_t)number : HD_TL_NONE;
	else if (which == STAGE)
		m->stage = number < HD_TL_NONE ? (uint32_t)number : HD_TL_NONE;
	else if (which == GATE)
		m->gate_ns = number;
	else if (which == FIRST)
		m->first_ns = number;
	m->transfer |= which == GATE;
	if (!m->valued)
		m->value = number;
	m->valued = true;
}

static enum hd_err read_args(struct import *in, struct members *m, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;
	bool first = true;

	if (!hd_tl_scan_take(&in->scan, '{'))
		return hd_tl_scan_skip(&in->scan) ? HD_OK : HD_E_INPUT;
	while (!err && hd_tl_scan_member(&in->scan, &in->key, &first)) {
		const char *key = in->key.at;
		bool name = !strcmp(key, "name"), labels = !strcmp(key, "labels");
		uint64_t number = UINT64_MAX;
		if ((name || labels) && hd_tl_scan_peek(&in->scan) == '"') {
			struct hd_text *to = &in->key;
			if (!read_text(in, to))
				return HD_E_INPUT;
			m->called = true;
			err = hd_tl_name_of(in->arena, &in->names, to->at, to->len,
				name ? &m->args_name : &m->labels, diag);
			continue;
		}
		int which = number_of(key);
		if (!(which < 0 && m->valued ? hd_tl_scan_skip(&in->scan) : read_count(in, &number)))
			return HD_E_INPUT;
		if (number != UINT64_MAX)
			take_number(m, which, number);
	}
	return err ? err : hd_tl_scan_failed(&in->scan) ? HD_E_INPUT : HD_OK;
}

/* False: the scan failed. */
static enum hd_err read_member(struct import *in, struct members *m, struct hd_diag *diag)
{
	const char *key = in->key.at;
	bool ok;

	if (!strcmp(key, "ph")) {
		ok = read_text(in, &in->key);
		m->phase = in->key.len == 1 ? in->key.at[0] : '?';
	} else if (!strcmp(key, "ts"))
		ok = read_time(in, &m->ts, &m->timed);
	else if (!strcmp(key, "dur"))
		ok = read_time(in, &m->dur, &m->lasts);
	else if (!strcmp(key, "name"))
		ok = read_text(in, &in->text[NAME]);
	else if (!strcmp(key, "cat"))
		ok = read_text(in, &in->text[CATEGORY]);
	else if (!strcmp(key, "pid"))
		ok = read_any(in, &in->text[PID]);
	else if (!strcmp(key, "tid"))
		ok = read_any(in, &in->text[TID]);
	else if (!strcmp(key, "id")) {
		char c = hd_tl_scan_peek(&in->scan);
		ok = c == '"' || c == '-' || (c >= '0' && c <= '9') ? read_any(in, &in->key) :
			hd_tl_scan_skip(&in->scan);
		m->identified = ok;
		m->id = hd_hash64(in->key.at, in->key.len);
	} else if (!strcmp(key, "args"))
		return read_args(in, m, diag);
	else
		ok = hd_tl_scan_skip(&in->scan);
	return ok ? HD_OK : HD_E_INPUT;
}

static enum hd_err lane_of(struct import *in, uint32_t *lane, struct hd_diag *diag)
{
	struct hd_text *pid = &in->text[PID], *tid = &in->text[TID];
	uint32_t before = in->pids.n, process;
	char number[16];
	enum hd_err err = hd_tl_name_of(in->arena, &in->pids, pid->at, pid->len, &process, diag);

	if (!err && in->pids.n > before) {
		err = hd_tl_grow(in->arena, &in->process, &in->processes_cap, in->pids.n,
			sizeof *in->process, diag);
		if (!err)
			in->process[process] = (struct import_process){ HD_TL_NONE, HD_TL_NONE };
	}
	if (err)
		return err;
	int n = snprintf(number, sizeof number, "%u:", process);
	in->key.len = 0;
	hd_text_put(&in->key, number, (size_t)n);
	hd_text_put(&in->key, tid->at, tid->len);
	before = in->tids.n;
	err = hd_tl_name_of(in->arena, &in->tids, in->key.at, in->key.len, lane, diag);
	if (err || in->tids.n == before)
		return err;
	if (in->tids.n > HD_TL_IMPORT_LANES)
		return hd_fail(diag, HD_E_INPUT, "%s: more than %d lanes", in->file, HD_TL_IMPORT_LANES);
	err = hd_tl_grow(in->arena, &in->lane, &in->lanes_cap, in->tids.n, sizeof *in->lane, diag);
	if (err)
		return err;
	in->lane[*lane] = (struct import_lane){ .process = process, .named = HD_TL_NONE };
	return hd_tl_name_of(in->arena, &in->names, tid->at, tid->len, &in->lane[*lane].name, diag);
}

static const struct { const char *category; enum hd_tl_class class; bool device; } categories[] = {
	{ "kernel", HD_TL_FORWARD, true }, { "gpu_memcpy", HD_TL_SEND, true },
	{ "gpu_memset", HD_TL_OTHER, true }, { "cuda_sync", HD_TL_WAIT, false },
};
static const struct { const char *part; enum hd_tl_class class; } parts[] = {
	{ "nccl", HD_TL_SUM }, { "gloo:", HD_TL_SUM }, { "Backward", HD_TL_BACKWARD },
	{ "backward", HD_TL_BACKWARD }, { "dgrad", HD_TL_BACKWARD }, { "wgrad", HD_TL_WEIGHTS },
	{ "Optimizer", HD_TL_UPDATE }, { "DataLoader", HD_TL_READ },
};

static enum hd_tl_class class_of(const char *category, const char *name, bool *device)
{
	enum hd_tl_class class = HD_TL_OTHER;

	for (uint8_t c = 0; c < HD_TL_CLASS_COUNT; c++)         /* of files that this program wrote */
		if (!strcmp(category, hd_tl_class_text(c)))
			return (enum hd_tl_class)c;
	for (size_t i = 0; i < sizeof categories / sizeof categories[0]; i++)
		if (!strcmp(category, categories[i].category)) {
			class = categories[i].class;
			*device |= categories[i].device;
		}
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
		if (strstr(name, parts[i].part))
			return parts[i].class;
	return class;
}

static uint8_t kind_of(const struct members *m, enum hd_tl_class class, const char *category)
{
	bool transfer = m->transfer || !strcmp(category, "gpu_memcpy");

	if (m->phase == 'C')
		return HD_EVENT_COUNTER;
	if (m->phase == 'i')
		return HD_EVENT_MARK;
	if (class == HD_TL_WAIT)
		return HD_EVENT_WAIT;
	return !transfer ? HD_EVENT_OP : class == HD_TL_SEND ? HD_EVENT_SEND : class == HD_TL_RECEIVE ?
		HD_EVENT_RECV : class == HD_TL_READ ? HD_EVENT_READ : HD_EVENT_OP;
}

/* A stamp that lies that long after the begin, and not after the end. */
static int64_t stamp(const struct members *m, int64_t dur, uint64_t after)
{
	return m->ts + (after < (uint64_t)dur ? (int64_t)after : dur);
}

static enum hd_err keep_event(struct import *in, const struct members *m, uint32_t lane,
	struct hd_diag *diag)
{
	enum hd_err err = hd_tl_grow(in->arena, &in->event, &in->cap, in->nevents + 1ull, sizeof *in->event,
		diag);
	bool device = false;
	uint32_t name;

	if (!err)
		err = hd_tl_name_of(in->arena, &in->names, in->text[NAME].at, in->text[NAME].len, &name,
			diag);
	if (err)
		return err;
	enum hd_tl_class class = class_of(in->text[CATEGORY].at, in->text[NAME].at, &device);
	int64_t dur = m->phase == 'X' && m->lasts ? m->dur : 0;
	in->lane[lane].device |= device;
	struct import_event *to = &in->event[in->nevents];
	*to = (struct import_event){ .phase = m->phase, .order = in->nevents, .e = { .t0 = m->ts,
		.t1 = m->ts + dur, .gate = stamp(m, dur, m->gate_ns), .first = stamp(m, dur, m->first_ns),
		.arg = m->phase == 'C' ? m->value : m->bytes, .lane = lane, .name = name,
		.step = HD_TL_NONE, .vn = m->vn, .stage = m->stage, .peer = HD_TL_NONE,
		.class = m->phase == 'C' ? HD_TL_OTHER : m->phase == 'i' ? HD_TL_MARK : (uint8_t)class,
		.kind = kind_of(m, class, in->text[CATEGORY].at) } };
	if (m->phase == 'X' && !strcmp(in->text[CATEGORY].at, "user_annotation") &&
		!strncmp(in->text[NAME].at, "ProfilerStep#", strlen("ProfilerStep#"))) {
		to->phase = HD_IMPORT_STEP;
		in->nsteps++;
	}
	if (m->phase == 's' || m->phase == 'f') {
		hd_text_put(&in->text[CATEGORY], "\n", 1);
		hd_text_put(&in->text[CATEGORY], in->text[NAME].at, in->text[NAME].len);
		to->e.flow = (hd_hash64(in->text[CATEGORY].at, in->text[CATEGORY].len) ^ m->id) | 1;
	}
	in->nevents++;
	return HD_OK;
}

static enum hd_err take_name(struct import *in, const struct members *m, uint32_t lane)
{
	const char *what = in->text[NAME].at;

	if (!m->called)
		return HD_OK;
	if (!strcmp(what, "process_name"))
		in->process[in->lane[lane].process].name = m->args_name;
	else if (!strcmp(what, "process_labels"))
		in->process[in->lane[lane].process].label = m->labels;
	else if (!strcmp(what, "thread_name"))
		in->lane[lane].named = m->args_name;
	return HD_OK;
}

static enum hd_err take_event(struct import *in, struct members *m, uint64_t index, struct hd_diag *diag)
{
	uint32_t lane;

	if (m->phase == 'I' || m->phase == 'R')
		m->phase = 'i';
	if (!m->phase || !strchr("XBEiCsfM", m->phase)) {
		in->foreign.nskipped++;
		return HD_OK;
	}
	if (m->phase != 'M' && !m->timed)
		return hd_fail(diag, HD_E_INPUT, "%s: event %" PRIu64 " (%.60s) has no ts that is a time",
			in->file, index, in->text[NAME].at);
	if (m->phase == 'X' && m->lasts && m->dur < 0)
		return hd_fail(diag, HD_E_INPUT, "%s: event %" PRIu64 " (%.60s) has a negative dur", in->file,
			index, in->text[NAME].at);
	if (in->nevents == HD_TL_IMPORT_EVENTS)
		return hd_fail(diag, HD_E_INPUT, "%s: more than %d events; record fewer steps", in->file,
			HD_TL_IMPORT_EVENTS);
	enum hd_err err = lane_of(in, &lane, diag);
	if (err)
		return err;
	return m->phase == 'M' ? take_name(in, m, lane) : keep_event(in, m, lane, diag);
}

static enum hd_err read_event(struct import *in, uint64_t index, struct hd_diag *diag)
{
	struct members m = { .vn = HD_TL_NONE, .stage = HD_TL_NONE, .args_name = HD_TL_NONE,
		.labels = HD_TL_NONE };
	enum hd_err err = HD_OK;
	bool first = true;

	for (size_t i = 0; i < sizeof in->text / sizeof in->text[0]; i++) {
		in->text[i].len = 0;
		hd_text_put(&in->text[i], "", 0);
	}
	if (!hd_tl_scan_take(&in->scan, '{'))
		return hd_tl_scan_skip(&in->scan) ? HD_OK : HD_E_INPUT;
	while (!err && hd_tl_scan_member(&in->scan, &in->key, &first))
		err = read_member(in, &m, diag);
	if (err || hd_tl_scan_failed(&in->scan))
		return err ? err : HD_E_INPUT;
	return take_event(in, &m, index, diag);
}

static enum hd_err read_events(struct import *in, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;
	bool first = true;

	if (!hd_tl_scan_take(&in->scan, '['))
		return hd_tl_scan_skip(&in->scan) ? HD_OK : HD_E_INPUT;
	for (uint64_t index = 0; !err && hd_tl_scan_item(&in->scan, &first); index++)
		err = read_event(in, index, diag);
	return err ? err : hd_tl_scan_failed(&in->scan) ? HD_E_INPUT : HD_OK;
}

static enum hd_err read_rank(struct import *in, struct hd_diag *diag)
{
	uint64_t rank = UINT64_MAX;
	bool first = true;
	(void)diag;

	if (!hd_tl_scan_take(&in->scan, '{'))
		return hd_tl_scan_skip(&in->scan) ? HD_OK : HD_E_INPUT;
	while (hd_tl_scan_member(&in->scan, &in->key, &first))
		if (!(!strcmp(in->key.at, "rank") ? read_count(in, &rank) : hd_tl_scan_skip(&in->scan)))
			return HD_E_INPUT;
	in->rank = rank < UINT16_MAX ? (uint32_t)rank : HD_TL_NONE;
	return hd_tl_scan_failed(&in->scan) ? HD_E_INPUT : HD_OK;
}

static enum hd_err read_base(struct import *in, struct hd_diag *diag)
{
	const char *text;
	char c = hd_tl_scan_peek(&in->scan);
	size_t len;
	(void)diag;

	if (c != '-' && (c < '0' || c > '9'))
		return hd_tl_scan_skip(&in->scan) ? HD_OK : HD_E_INPUT;
	if (!hd_tl_scan_number(&in->scan, &text, &len))
		return HD_E_INPUT;
	(void)hd_tl_scan_decimal(text, len, 0, &in->base_ns);
	return HD_OK;
}

static const struct {
	const char *key;
	enum hd_err (*read)(struct import *in, struct hd_diag *diag);
} tops[] = {
	{ "traceEvents", read_events }, { "distributedInfo", read_rank },
	{ "baseTimeNanoseconds", read_base },
};

enum hd_err hd_tl_import_read(struct import *in, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;
	bool first = true;

	if (hd_tl_scan_peek(&in->scan) == '[')
		err = read_events(in, diag);
	else if (!hd_tl_scan_take(&in->scan, '{')) {
		in->scan.why = "it begins with neither { nor [";
		err = HD_E_INPUT;
	} else
		while (!err && hd_tl_scan_member(&in->scan, &in->key, &first)) {
			size_t i = 0, n = sizeof tops / sizeof tops[0];
			while (i < n && strcmp(tops[i].key, in->key.at) != 0)
				i++;
			err = i < n ? tops[i].read(in, diag) :
				hd_tl_scan_skip(&in->scan) ? HD_OK : HD_E_INPUT;
		}
	in->foreign.cut = in->scan.cut;
	if (in->scan.why || (in->scan.cut && !in->nevents))
		return damaged(in, diag);
	return in->scan.cut ? HD_OK : err;
}

bool hd_tl_is_foreign(const uint8_t *bytes, size_t len)
{
	size_t at = 0;

	while (at < len && (bytes[at] == ' ' || (bytes[at] >= '\t' && bytes[at] <= '\r')))
		at++;
	return hd_gzip_is(bytes, len) || (at < len && (bytes[at] == '{' || bytes[at] == '['));
}

enum hd_err hd_tl_import(struct hd_arena *arena, const char *name, const uint8_t *bytes, size_t len,
	struct hd_timeline *timeline, struct hd_tl_foreign *foreign, struct hd_diag *diag)
{
	struct import *in = hd_arena_take(arena, 1, sizeof *in);
	uint8_t *plain;
	enum hd_err err = in ? HD_OK : hd_fail(diag, HD_E_NOMEM, "%s: no memory to read it", name);

	if (!err && hd_gzip_is(bytes, len)) {
		err = hd_gzip_unpack(arena, name, bytes, len, HD_TL_IMPORT_BYTES, &plain, &len, diag);
		bytes = plain;
	}
	if (err)
		return err;
	*in = (struct import){ .arena = arena, .file = name, .rank = HD_TL_NONE, .scan = {
		.begin = (const char *)bytes, .at = (const char *)bytes, .end = (const char *)bytes + len } };
	hd_text_init(&in->key, arena);
	for (size_t i = 0; i < sizeof in->text / sizeof in->text[0]; i++)
		hd_text_init(&in->text[i], arena);
	uint32_t unknown;
	err = hd_tl_name_of(arena, &in->names, "?", 1, &unknown, diag);
	if (!err)
		err = hd_tl_import_read(in, diag);
	for (size_t i = 0; i < sizeof in->text / sizeof in->text[0]; i++)
		if (in->text[i].full || in->key.full)
			err = hd_fail(diag, HD_E_NOMEM, "%s: no memory for texts", name);
	if (!err)
		err = hd_tl_import_build(in, timeline, diag);
	if (!err)
		*foreign = in->foreign;
	return err;
}
