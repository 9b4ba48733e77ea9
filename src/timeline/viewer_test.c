#include "timeline/viewer.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/json.h"
#include "timeline/testing.h"
#include "timeline/viewer_int.h"

static struct hd_arena arena;
static struct tl_maker maker;
static uint64_t drawn;

static uint64_t draw(uint64_t below)
{
	drawn = drawn * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (drawn >> 33) % below;
}

static int start(void **unused)
{
	(void)unused;
	hd_arena_init(&arena, 0);
	return 0;
}

static int finish(void **unused)
{
	(void)unused;
	tl_free(&maker);
	hd_arena_finish(&arena);
	return 0;
}

/* ---- a timeline with something of everything ---- */

static void draw_event(uint32_t lane, int64_t from, uint32_t nnames)
{
	static const struct { enum hd_event_kind kind; enum hd_tl_class class; } sort[] = {
		{ HD_EVENT_OP, HD_TL_FORWARD }, { HD_EVENT_OP, HD_TL_UPDATE }, { HD_EVENT_SEND, HD_TL_SEND },
		{ HD_EVENT_RECV, HD_TL_RECEIVE }, { HD_EVENT_READ, HD_TL_READ }, { HD_EVENT_WAIT,
			HD_TL_WAIT },
		{ HD_EVENT_MARK, HD_TL_MARK }, { HD_EVENT_COUNTER, HD_TL_OTHER } };
	uint64_t s = draw(8), length = s >= 6 ? 0 : draw(2) ? draw(200) : draw(UINT64_C(1) << 34);
	char *name = hd_arena_take(&arena, 16, 1);
	snprintf(name, 16, "name %u", (unsigned)draw(nnames));
	struct hd_tl_event *e = tl_event(&maker, lane, sort[s].kind, sort[s].class, from, from +
		(int64_t)length,
		name);

	e->instr = draw(3) ? (uint32_t)draw(70000) : 0;
	e->arg = sort[s].kind == HD_EVENT_OP ? hd_work_arg(draw(1 << 20), 1, 2) : draw(UINT64_C(1) << 40);
	e->vn = draw(2) ? (uint32_t)draw(300) : HD_TL_NONE;
	e->stage = draw(2) ? (uint32_t)draw(9) : HD_TL_NONE;
	e->predicted_ns = (uint32_t)draw(3) * 1000;
	e->gate = from + (int64_t)(length / 4);
	e->first = from + (int64_t)(length / 2);
	e->flow = draw(2) ? 1 + draw(40) : 0;
	e->peer = draw(2) ? (uint32_t)draw(3) : HD_TL_NONE;
	e->chunks = (uint32_t)draw(5);
	e->preempted = (uint16_t)draw(3);
	e->priority_class = (uint16_t)draw(3);
	e->primitive = (uint8_t)draw(7);
	e->flags = (uint8_t)draw(32);
}

/* Anywhere, many in one place, or at the very end of a step. */
static int64_t draw_begin(uint32_t nsteps)
{
	int64_t second = (int64_t)draw(nsteps) * 1000000000;
	uint64_t how = draw(4);

	return how == 0 ? second + 999999999 : how == 1 ? second + (int64_t)draw(100000) :
		second + (int64_t)draw(1000000000) - 5000;
}

/* Three processes of two lanes, `nsteps` steps of 1 s each, the second process' the longest, `n` events a
 * lane. */
static const struct hd_timeline *draw_timeline(uint64_t seed, uint32_t n, uint32_t nsteps)
{
	drawn = seed;
	tl_free(&maker);
	tl_begin(&maker);
	for (uint32_t p = 0; p < 3; p++) {
		int64_t shorter = (p + 2) % 3;
		uint32_t process = tl_process(&maker, p ? "worker" : "coordinator", p ? p : HD_TL_NONE);
		for (uint32_t l = 0; l < 2; l++) {
			uint32_t lane = tl_lane(&maker, process, l ? HD_LANE_TRANSFER : HD_LANE_CONTROL,
				"lane");
			for (uint32_t i = 0; i < n; i++)
				draw_event(lane, draw_begin(nsteps), 300);
		}
		for (uint32_t s = 0; s < nsteps; s++)
			tl_step(&maker, process, 10 + s, s * INT64_C(1000000000) + shorter,
				s * INT64_C(1000000000) + 999999999 - shorter, s % 3 != 1);
	}
	return tl_end(&maker);
}

/* ---- the page read back ---- */

static const char *between(const char *text, const char *from, const char *to, size_t *len)
{
	const char *at = strstr(text, from), *end = at ? strstr(at + strlen(from), to) : NULL;

	assert_non_null(at);
	assert_non_null(end);
	*len = (size_t)(end - at) - strlen(from);
	return at + strlen(from);
}

static const struct hd_json *head_of(const char *page)
{
	const struct hd_json *head = NULL;
	size_t len;
	const char *at = between(page, "<script type=\"application/json\" id=\"head\">", "</script>", &len);

	assert_int_equal(hd_json_parse(&arena, "head", at, len, &head, NULL), HD_OK);
	return head;
}

static const struct hd_json *get(const struct hd_json *object, const char *key)
{
	const struct hd_json *v = hd_json_find(object, key);

	CHECK(v, "%s is missing", key);
	return v;
}

static double number(const struct hd_json *object, const char *key)
{
	double v = 0;

	assert_int_equal(hd_json_as_f64(get(object, key), &v, NULL), HD_OK);
	return v;
}

static const char *text_of(const struct hd_json *json)
{
	const char *text = NULL;

	assert_int_equal(hd_json_as_text(json, &text, NULL), HD_OK);
	return text;
}

static const char *text(const struct hd_json *object, const char *key) { return text_of(get(object, key)); }

/* Base64 by its definition: six bits a letter. */
static uint8_t *bits_of(const char *at, size_t len)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint8_t *out = hd_arena_take(&arena, len + 8, 1);

	for (size_t i = 0; i < len && at[i] != '='; i++) {
		const char *letter = strchr(letters, at[i]);
		assert_non_null(letter);
		for (size_t b = 0; b < 6; b++)
			if ((letter - letters) >> (5 - b) & 1)
				out[(6 * i + b) / 8] |= (uint8_t)(0x80 >> (6 * i + b) % 8);
	}
	return out;
}

struct column { uint64_t n; double *at; };

/* As the page reads it. */
static struct column column(const char *page, const struct hd_json *timeline, uint32_t number_of,
	const char *of,
	const char *name)
{
	const struct hd_json *columns = get(timeline, "columns");
	char open[80];
	size_t len;

	snprintf(open, sizeof open, "<script type=\"application/octet-stream\" id=\"data%u\">", number_of);
	const char *data = between(page, open, "</script>", &len);
	for (size_t i = 0; i < hd_json_count(columns); i++) {
		const struct hd_json *c = hd_json_item(columns, i);
		if (strcmp(text(c, "of"), of) != 0 || strcmp(text(c, "name"), name) != 0)
			continue;
		struct column out = { (uint64_t)number(c, "n"), NULL };
		const char *type = text(c, "type");
		out.at = hd_arena_take(&arena, out.n + 1, sizeof *out.at);
		assert_true((uint64_t)number(c, "at") + (uint64_t)number(c, "len") <= len);
		const uint8_t *b = bits_of(data + (size_t)number(c, "at"), (size_t)number(c, "len"));
		for (uint64_t k = 0; k < out.n; k++) {
			uint16_t u16; uint32_t u32;
			if (!strcmp(type, "one")) {
				out.at[k] = number(c, "value");
			} else if (!strcmp(type, "u8")) {
				out.at[k] = b[k];
			} else if (!strcmp(type, "u16")) {
				memcpy(&u16, b + 2 * k, 2);
				out.at[k] = u16;
			} else if (!strcmp(type, "u32")) {
				memcpy(&u32, b + 4 * k, 4);
				out.at[k] = u32;
			} else {
				assert_string_equal(type, "f64");
				memcpy(&out.at[k], b + 8 * k, 8);
			}
		}
		return out;
	}
	fail_msg("no column %s of %s", name, of);
	return (struct column){ 0 };
}

static const char *write_page(const struct hd_viewer_trace *trace, uint32_t n, const char *title)
{
	struct hd_text page;

	hd_text_init(&page, &arena);
	assert_int_equal(hd_viewer_write(trace, n, title, &page, NULL), HD_OK);
	assert_int_equal(strlen(page.at), page.len);
	return page.at;
}

/* ---- tests ---- */

static void a_page_needs_nothing_and_its_texts_are_text(void **unused)
{
	static const char *const bad[] = { "</script><img src=x onerror=alert(1)>", "<!--<script>",
		"a\x01\x1b[31m\n\r",
		"\"quoted\\ \" & 'x'", "\xff\xfe", "\xe2\x80\xa8" };
	static const char *const read[] = { "</script><img src=x onerror=alert(1)>", "<!--<script>",
		"a\x01\x1b[31m\n\r", "\"quoted\\ \" & 'x'", "\xef\xbf\xbd\xef\xbf\xbd", "\xe2\x80\xa8" };
	size_t scripts = 0;

	(void)unused;
	tl_begin(&maker);
	uint32_t p = tl_process(&maker, bad[0], 0), lane = tl_lane(&maker, p, HD_LANE_DEVICE, bad[0]);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		tl_event(&maker, lane, HD_EVENT_OP, HD_TL_FORWARD, (int64_t)i * 10, (int64_t)i * 10 + 5,
			bad[i]);
	maker.process[p].host = bad[1];
	struct hd_timeline t = *tl_end(&maker);
	t.job = bad[0];
	const char *page = write_page(&(struct hd_viewer_trace){ .timeline = &t, .title = bad[0] }, 1,
		bad[0]);
	for (const char *at = page; (at = strstr(at, "<script")); at++)
		scripts++;
	assert_int_equal(scripts, 3);                 /* data, head, the script */
	for (size_t i = 0; i < 4; i++)
		assert_null(strstr(page, (const char *const[]){ "<img", "<!--", "http:", "https:" }[i]));
	assert_non_null(strstr(page, "content=\"default-src 'none'; style-src 'sha256-"));
	assert_null(strstr(page, "unsafe"));
	const struct hd_json *head = head_of(page), *one = hd_json_item(get(head, "timelines"), 0);
	assert_string_equal(text(head, "title"), bad[0]);
	assert_string_equal(text(one, "job"), bad[0]);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_string_equal(text_of(hd_json_item(get(one, "names"), i + 1)), read[i]);
}

/* The other end of a transfer, by looking at all: the k-th sent and the k-th received of a flow. */
static uint64_t other_end(const struct hd_timeline *t, uint64_t i)
{
	const struct hd_tl_event *e = &t->event[i];
	uint8_t there = e->kind == HD_EVENT_SEND ? HD_EVENT_RECV : HD_EVENT_SEND;
	uint64_t before = 0;

	if (!e->flow || (e->kind != HD_EVENT_SEND && e->kind != HD_EVENT_RECV))
		return UINT64_MAX;
	for (uint64_t k = 0; k < t->nevents; k++)
		before += t->event[k].flow == e->flow && t->event[k].kind == e->kind &&
			(t->event[k].t0 < e->t0 || (t->event[k].t0 == e->t0 && k < i));
	for (uint64_t k = 0; k < t->nevents; k++) {
		uint64_t earlier = 0;
		if (t->event[k].flow != e->flow || t->event[k].kind != there)
			continue;
		for (uint64_t j = 0; j < t->nevents; j++)
			earlier += t->event[j].flow == e->flow && t->event[j].kind == there &&
				(t->event[j].t0 < t->event[k].t0 || (t->event[j].t0 == t->event[k].t0 &&
					j < k));
		if (earlier == before)
			return k;
	}
	return UINT64_MAX;
}

static double none_or(uint32_t v) { return v == HD_TL_NONE ? 0 : v + 1.0; }

#define EQUAL(name, value) CHECK(c_##name.at[i] == (double)(value), "event %u: " #name " %g", (unsigned)i, \
	c_##name.at[i])
#define COLUMN(name) struct column c_##name = column(page, one, k, "event", #name); \
	assert_int_equal(c_##name.n, t->nevents)

static void check_events(const char *page, const struct hd_json *one, uint32_t k, const struct hd_timeline *t)
{
	COLUMN(since); COLUMN(length); COLUMN(name); COLUMN(class); COLUMN(kind); COLUMN(flags);
		COLUMN(instr);
	COLUMN(step); COLUMN(vn); COLUMN(stage); COLUMN(arg); COLUMN(predicted);

	for (uint32_t l = 0; l < t->nlanes; l++) {
		const struct hd_json *lane = hd_json_item(get(one, "lanes"), l);
		double at = number(lane, "t0");
		assert_int_equal((uint64_t)number(lane, "begin"), t->lane[l].begin);
		assert_int_equal((uint64_t)number(lane, "end"), t->lane[l].end);
		for (uint64_t i = t->lane[l].begin; i < t->lane[l].end; i++) {
			const struct hd_tl_event *e = &t->event[i];
			at += c_since.at[i];
			CHECK(at == (double)e->t0, "event %u begins at %g", (unsigned)i, at);
			EQUAL(length, e->t1 - e->t0);
			EQUAL(name, e->name);
			EQUAL(class, e->class);
			EQUAL(kind, e->kind);
			EQUAL(flags, e->flags);
			EQUAL(instr, e->instr);
			EQUAL(step, e->step == HD_TL_NONE ? 0 : t->step[e->step].number + 1);
			EQUAL(vn, none_or(e->vn));
			EQUAL(stage, none_or(e->stage));
			EQUAL(arg, e->kind == HD_EVENT_OP ? hd_work_bytes(e->arg) : e->arg);
			EQUAL(predicted, e->predicted_ns);
		}
	}
}
#undef COLUMN
#define COLUMN(name) struct column c_##name = column(page, one, k, "transfer", #name)

static void check_transfers(const char *page, const struct hd_json *one, uint32_t k,
	const struct hd_timeline *t)
{
	COLUMN(place); COLUMN(gate); COLUMN(first); COLUMN(chunks); COLUMN(preempted); COLUMN(priority);
	COLUMN(primitive); COLUMN(peer); COLUMN(other);
	uint64_t i = 0;
	double place = 0;

	for (uint64_t n = 0; n < t->nevents; n++) {
		const struct hd_tl_event *e = &t->event[n];
		if (e->kind != HD_EVENT_SEND && e->kind != HD_EVENT_RECV && e->kind != HD_EVENT_READ)
			continue;
		assert_true(i < c_place.n);
		place += c_place.at[i];
		CHECK(place == (double)n, "transfer %u is of %g", (unsigned)i, place);
		EQUAL(gate, e->gate - e->t0);
		EQUAL(first, e->first - e->t0);
		EQUAL(chunks, e->chunks);
		EQUAL(preempted, e->preempted);
		EQUAL(priority, e->priority_class);
		EQUAL(primitive, e->primitive);
		EQUAL(peer, none_or(e->peer));
		EQUAL(other, other_end(t, n) == UINT64_MAX ? 0 : other_end(t, n) + 1);
		i++;
	}
	assert_int_equal(i, c_place.n);
}

static void columns_are_the_events(void **unused)
{
	(void)unused;
	for (uint64_t seed = 0; seed < DRAWS(20); seed++) {
		const struct hd_timeline *t = draw_timeline(seed, seed ? 1 + (uint32_t)draw(40) : 0, 4);
		struct hd_viewer_trace trace[] = { { .timeline = t, .title = "a" }, { .timeline = t, .title =
			"b" } };
		const char *page = write_page(trace, 2, "two");
		const struct hd_json *all = get(head_of(page), "timelines");
		assert_int_equal(hd_json_count(all), 2);
		for (uint32_t k = 0; k < 2; k++) {
			const struct hd_json *one = hd_json_item(all, k);
			check_events(page, one, k, t);
			check_transfers(page, one, k, t);
			assert_int_equal((int64_t)number(one, "begin"), t->begin);
			assert_int_equal((int64_t)number(one, "end"), t->end);
			assert_int_equal(hd_json_count(get(one, "steps")), t->nsteps);
			assert_int_equal(hd_json_count(get(one, "processes")), 3);
		}
		assert_string_equal(page, write_page(trace, 2, "two"));
	}
}

/* Two devices, the second waits in each step for what the first sends; steps 3, 4 and a dropped 5. */
static const struct hd_timeline *make_steps(void)
{
	tl_free(&maker);
	tl_begin(&maker);
	for (uint32_t p = 0; p < 2; p++) {
		uint32_t process = tl_process(&maker, "w", p), dev = tl_lane(&maker, process, HD_LANE_DEVICE,
			"d"),
			wire = tl_lane(&maker, process, HD_LANE_TRANSFER, "t");
		for (int64_t s = 0; s < 3; s++) {
			int64_t t0 = 1000 * s;
			tl_event(&maker, dev, HD_EVENT_OP, HD_TL_FORWARD, t0, t0 + 300 + 10 * s, "F");
			if (p)
				tl_event(&maker, dev, HD_EVENT_WAIT, HD_TL_WAIT, t0 + 400, t0 + 600,
					"wait")->arg =
					hd_wait_arg(HD_WAIT_TRANSFER, 1);
			tl_event(&maker, dev, HD_EVENT_OP, HD_TL_UPDATE, t0 + 650, t0 + 700 + 100 * p, "S");
			struct hd_tl_event *e = tl_event(&maker, wire, p ? HD_EVENT_RECV : HD_EVENT_SEND,
				p ? HD_TL_RECEIVE : HD_TL_SEND, t0 + 310, t0 + 580 + p, "t");
			e->flow = 1 + (uint64_t)s;
			e->instr = 1;
			e->first = t0 + 400;
			tl_step(&maker, process, 3 + (uint64_t)s, t0, t0 + 700 + 100 * p, s < 2);
		}
	}
	return tl_end(&maker);
}

static void critical_paths_come_along(void **unused)
{
	const struct hd_timeline *t = make_steps();
	const char *page = write_page(&(struct hd_viewer_trace){ .timeline = t, .title = "t" }, 1, "t");
	const struct hd_json *one = hd_json_item(get(head_of(page), "timelines"), 0);
	struct column since = column(page, one, 0, "path", "since"), length = column(page, one, 0, "path",
		"length"),
		place = column(page, one, 0, "path", "place"), lane = column(page, one, 0, "path", "lane"),
		part = column(page, one, 0, "path", "part"), step = column(page, one, 0, "path", "step");
	struct hd_tl_causes causes;
	double at = number(one, "path_t0");
	uint64_t i = 0;

	(void)unused;
	assert_int_equal(hd_tl_causes_make(&causes, t, &arena, NULL), HD_OK);
	for (uint64_t s = 3; s <= 4; s++) {
		struct hd_tl_path path;
		assert_int_equal(hd_tl_path_of(&causes, s, &arena, &path, NULL), HD_OK);
		assert_true(path.n > 2);
		for (size_t k = 0; k < path.n; k++, i++) {
			const struct hd_tl_segment *p = &path.segment[k];
			assert_true(i < since.n);
			at += since.at[i];
			assert_true(at == (double)p->t0 && length.at[i] == (double)(p->t1 - p->t0));
			assert_true(step.at[i] == (double)s && lane.at[i] == p->lane);
			assert_int_equal((int)part.at[i], p->part);
			assert_true(place.at[i] == (p->event == HD_TL_NO_EVENT ? 0 : (double)p->event + 1));
		}
	}
	assert_int_equal(i, since.n);
}

/* At both sides of each width's end, and below 0; a column of one value takes no room. */
static void columns_hold_their_extremes(void **unused)
{
	static const int64_t length[] = { 0, 255, 256, 65535, 65536, UINT32_MAX, INT64_C(1) << 32,
		INT64_C(1) << 52 };

	(void)unused;
	for (size_t i = 0; i < 2 * sizeof length / sizeof *length; i++) {
		int64_t longest = length[i / 2];
		tl_free(&maker);
		tl_begin(&maker);
		uint32_t p = tl_process(&maker, "w", 0), lane = tl_lane(&maker, p, HD_LANE_TRANSFER, "t");
		tl_event(&maker, lane, HD_EVENT_SEND, HD_TL_SEND, 5, 5 + longest, "x");
		tl_event(&maker, lane, HD_EVENT_SEND, HD_TL_SEND, 9, 9 + (i % 2 ? longest : 0), "x")->gate =
			9 -
			(int64_t)(i % 3);
		const struct hd_timeline *t = tl_end(&maker);
		const char *page = write_page(&(struct hd_viewer_trace){ .timeline = t, .title = "t" }, 1,
			"t");
		const struct hd_json *one = hd_json_item(get(head_of(page), "timelines"), 0);
		check_events(page, one, 0, t);
		check_transfers(page, one, 0, t);
		for (size_t c = 0; c < hd_json_count(get(one, "columns")); c++) {
			const struct hd_json *column = hd_json_item(get(one, "columns"), c);
			if (!strcmp(text(column, "name"), "name") || (i % 2 && !strcmp(text(column, "name"),
				"length") && !strcmp(text(column, "of"), "event")))
				assert_true(number(column, "len") == 0);
		}
	}
}

static uint64_t between_steps(const struct hd_timeline *t, uint64_t a, uint64_t b)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < t->nevents; i++)
		n += t->event[i].t0 >= (int64_t)(a - 10) * 1000000000 &&
			t->event[i].t0 <= (int64_t)(b - 10) * 1000000000 + 999999999;
	return n;
}

/* Of steps 10 to 17 as many neighbours as fit, from the end that was asked for. */
static void of_too_many_events_whole_steps_are_kept(void **unused)
{
	struct hd_viewer_kept kept;

	(void)unused;
	for (uint64_t seed = 0; seed < DRAWS(60); seed++) {
		const struct hd_timeline *t = draw_timeline(seed, 30, 8);
		bool last = seed % 2;
		struct hd_viewer_trace trace = { .timeline = t, .step_from = last ? 1 : 12, .step_to = last ?
			0 : 15 };
		uint64_t budget = seed % 3 ? draw(t->nevents) : last ? between_steps(t, 15, 17) :
			between_steps(t, 12, 13), first = last ? 17 : 12, end = last ? 10 : 15, n = 0, a =
				first,
			b = first;
		assert_int_equal(hd_viewer_keep(&trace, budget, &arena, &kept, NULL), HD_OK);
		assert_false(kept.all);
		while (between_steps(t, a, b) <= budget) {
			n++;
			if ((last ? a : b) == end)
				break;
			*(last ? &a : &b) += last ? UINT64_MAX : 1;
		}
		if (n == 0) {
			assert_true(kept.step_from > kept.step_to);
			assert_int_equal(kept.at[t->nlanes], 0);
			continue;
		}
		assert_int_equal(kept.step_from, last ? 18 - n : 12);
		assert_int_equal(kept.step_to, last ? 17 : 11 + n);
		assert_int_equal(kept.at[t->nlanes], between_steps(t, kept.step_from, kept.step_to));
		uint64_t place = 0;
		for (uint64_t i = 0; i < t->nevents; i++) {
			int64_t t0 = t->event[i].t0;
			bool in = t0 >= (int64_t)(kept.step_from - 10) * 1000000000 &&
				t0 <= (int64_t)(kept.step_to - 10) * 1000000000 + 999999999;
			assert_int_equal(hd_viewer_place(&kept, t, i), in ? place++ : HD_TL_NONE);
		}
	}
}

/* Each event is in one bin of its lane, and nothing else is. */
static void bins_are_sums_of_their_events(void **unused)
{
	struct hd_viewer_bins bins;

	(void)unused;
	for (uint64_t seed = 0; seed < DRAWS(10); seed++) {
		const struct hd_timeline *t = draw_timeline(seed, 40, 3);
		assert_int_equal(hd_viewer_bin(t, &arena, &bins, NULL), HD_OK);
		for (uint32_t l = 0; l < t->nlanes; l++) {
			const struct hd_tl_lane *lane = &t->lane[l];
			uint64_t i = lane->begin;
			assert_true(bins.at[l + 1] - bins.at[l] <= HD_VIEWER_LANE_BINS);
			for (uint64_t b = bins.at[l]; b < bins.at[l + 1]; b++) {
				const struct hd_viewer_bin *bin = &bins.bin[b];
				uint64_t busy = 0, of[HD_TL_CLASS_COUNT] = { 0 }, n = 0;
				int64_t t0 = INT64_MAX, t1 = INT64_MIN;
				for (; n < bin->count; i++) {
					const struct hd_tl_event *e = &t->event[i];
					assert_true(i < lane->end);
					if (e->kind == HD_EVENT_COUNTER)
						continue;
					n++;
					t0 = e->t0 < t0 ? e->t0 : t0;
					t1 = e->t1 > t1 ? e->t1 : t1;
					busy += (uint64_t)(e->t1 - e->t0);
					of[e->class] += (uint64_t)(e->t1 - e->t0) + 1;
				}
				assert_true(bin->t0 == t0 && bin->t1 == t1 && bin->busy == busy);
				for (uint8_t c = 0; c < HD_TL_CLASS_COUNT; c++)
					assert_true(of[bin->class] >= of[c]);
			}
			for (; i < lane->end; i++)
				assert_int_equal(t->event[i].kind, HD_EVENT_COUNTER);
		}
	}
}

/* Bins of a lane whose events are evenly apart are as many as it may have, and no more. */
static void bins_are_bounded(void **unused)
{
	struct hd_viewer_bins bins;

	(void)unused;
	tl_begin(&maker);
	uint32_t p = tl_process(&maker, "w", 0), lane = tl_lane(&maker, p, HD_LANE_DEVICE, "d");
	for (int64_t i = 0; i < 3 * HD_VIEWER_LANE_BINS; i++)
		tl_event(&maker, lane, HD_EVENT_OP, HD_TL_FORWARD, i * 7, i * 7 + 3, "F");
	const struct hd_timeline *t = tl_end(&maker);
	assert_int_equal(hd_viewer_bin(t, &arena, &bins, NULL), HD_OK);
	assert_in_range(bins.at[1], HD_VIEWER_LANE_BINS / 2, HD_VIEWER_LANE_BINS);
}

static enum hd_err take(void *self, const void *bytes, size_t len, struct hd_diag *diag)
{
	(void)diag;
	assert_in_range(len, 1, HD_TL_PIECE);
	hd_text_put(self, bytes, len);
	return HD_OK;
}

static enum hd_err refuse(void *self, const void *bytes, size_t len, struct hd_diag *diag)
{
	(void)bytes, (void)len;
	assert_int_equal(++*(int *)self, 1);
	return hd_fail(diag, HD_E_IO, "full");
}

static void a_writer_among_others_gives_the_same_page(void **unused)
{
	const struct hd_timeline *t = draw_timeline(1, 30, 2);
	struct hd_text got;
	int calls = 0;

	(void)unused;
	hd_text_init(&got, &arena);
	assert_int_equal(hd_tl_write_html(t, &(struct hd_tl_sink){ take, &got }, &arena, NULL), HD_OK);
	assert_true(got.len > HD_TL_PIECE);
	assert_string_equal(got.at, write_page(&(struct hd_viewer_trace){ .timeline = t, .title = "timeline",
		.step_from = 1 }, 1, "timeline"));
	assert_int_equal(hd_tl_write_html(t, &(struct hd_tl_sink){ refuse, &calls }, &arena, NULL), HD_E_IO);
}

static enum hd_err try_write(const struct hd_timeline *t)
{
	struct hd_arena own;
	struct hd_text page;

	hd_arena_init(&own, 0);
	hd_text_init(&page, &own);
	enum hd_err err = hd_viewer_write(&(struct hd_viewer_trace){ .timeline = t, .title = "t" }, 1, "t",
		&page,
		NULL);
	hd_arena_finish(&own);
	return err;
}

static void without_memory_it_says_so(void **unused)
{
	enum hd_err err;
	const struct hd_timeline *t = make_steps();

	(void)unused;
	EACH_PIECE_REFUSED(err, try_write(t));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_page_needs_nothing_and_its_texts_are_text, start, finish),
		cmocka_unit_test_setup_teardown(columns_are_the_events, start, finish),
		cmocka_unit_test_setup_teardown(critical_paths_come_along, start, finish),
		cmocka_unit_test_setup_teardown(columns_hold_their_extremes, start, finish),
		cmocka_unit_test_setup_teardown(of_too_many_events_whole_steps_are_kept, start, finish),
		cmocka_unit_test_setup_teardown(bins_are_sums_of_their_events, start, finish),
		cmocka_unit_test_setup_teardown(bins_are_bounded, start, finish),
		cmocka_unit_test_setup_teardown(a_writer_among_others_gives_the_same_page, start, finish),
		cmocka_unit_test_setup_teardown(without_memory_it_says_so, start, finish),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
