/* A timeline as Chrome's trace events: a header, then one event a line, in the names of Kineto's files.
 *
 * Complete events with times in microseconds since the base, to three decimals; every slice of a file is
 * disjoint from the others of its line or strictly nested. The profile for HolisticTraceAnalysis has whole
 * microseconds instead, begin and end both rounded down, which keeps order and nesting; its rules are those
 * that its reader has: steps are "user_annotation" named ProfilerStep#N, work of a device is "kernel" with
 * a stream and has a launch of the host, communication is "nccl... Kernel"; what waits is no kernel. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "timeline/pack.h"
#include "timeline/write_int.h"

/* FIRST_LAUNCH: its reader keeps the rows that launches belong to in as many bits as the largest number of a
 * launch takes, and fails where 16 are too few for the rows. */
enum { LINE_CAP = HD_TL_ESCAPED * HD_TL_NAME_MAX + 1024, LINES_PER_LANE = 64,
       FIRST_LAUNCH = 1 << 20 };

struct chrome {
	const struct hd_timeline *t;
	struct hd_tl_out *out;
	struct hd_json_writer json;
	struct hd_text text;
	char line[LINE_CAP];
	bool hta, follows;
	uint32_t process, stream;         /* of the event at hand */
	uint64_t tid, correlation;
};

static void open_event(struct chrome *c, const char *phase, const char *category, const char *name)
{
	char fit[HD_TL_NAME_MAX + 1];

	hd_tl_name_fit(name, fit);
	hd_text_fixed(&c->text, c->line, sizeof c->line);
	hd_json_writer_init(&c->json, &c->text);
	hd_json_open_object(&c->json, NULL);
	hd_json_put_text(&c->json, "ph", phase);
	if (category)
		hd_json_put_text(&c->json, "cat", category);
	hd_json_put_text(&c->json, "name", fit);
	hd_json_put_i64(&c->json, "pid", c->hta ? 0 : (int64_t)c->process);
	hd_json_put_i64(&c->json, "tid", (int64_t)c->tid);
}

static void close_event(struct chrome *c)
{
	hd_json_close(&c->json);
	if (c->follows)
		hd_tl_out_put(c->out, ",\n", 2);
	c->follows = true;
	hd_tl_out_put(c->out, c->text.at, c->text.len);
}

/* The writer of JSON has no numbers of three decimals: they are put as text of their own. */
static void put_us(struct chrome *c, const char *key, int64_t ns)
{
	uint64_t abs = ns < 0 ? (uint64_t)-ns : (uint64_t)ns;

	hd_text_addf(&c->text, ",\"%s\":%s%" PRIu64 ".%03u", key, ns < 0 ? "-" : "", abs / 1000,
		(unsigned)(abs % 1000));
}

static int64_t floor_us(int64_t ns) { return ns >= 0 ? ns / 1000 : -((-ns + 999) / 1000); }

static void put_times(struct chrome *c, const struct hd_tl_event *e, bool lasts)
{
	int64_t t0 = e->t0 - c->t->begin, t1 = e->t1 - c->t->begin;

	if (!c->hta) {
		put_us(c, "ts", t0);
		if (lasts)
			put_us(c, "dur", t1 - t0);
		return;
	}
	hd_json_put_i64(&c->json, "ts", floor_us(t0));
	if (lasts)
		hd_json_put_i64(&c->json, "dur", floor_us(t1) - floor_us(t0));
}

static void put_args(struct chrome *c, const struct hd_tl_event *e)
{
	bool transfer = hd_event_has_ext(e->kind) && e->kind != HD_EVENT_CLOCK;

	if (!c->hta && !transfer && !e->predicted_ns && e->vn == HD_TL_NONE && e->stage == HD_TL_NONE &&
		e->step == HD_TL_NONE)
		return;
	hd_json_open_object(&c->json, "args");
	if (c->hta) {
		hd_json_put_i64(&c->json, "stream", c->stream);
		hd_json_put_i64(&c->json, "correlation", (int64_t)++c->correlation);
	}
	if (e->vn != HD_TL_NONE)
		hd_json_put_i64(&c->json, "virtual node", e->vn);
	if (e->stage != HD_TL_NONE)
		hd_json_put_i64(&c->json, "stage", e->stage);
	if (e->step != HD_TL_NONE)
		hd_json_put_i64(&c->json, "step", (int64_t)c->t->step[e->step].number);
	if (transfer) {
		hd_json_put_i64(&c->json, "bytes", (int64_t)(e->arg & INT64_MAX));
		hd_json_put_i64(&c->json, "gate_ns", e->gate - e->t0);
		hd_json_put_i64(&c->json, "first_byte_ns", e->first - e->t0);
	}
	if (e->predicted_ns)
		hd_json_put_i64(&c->json, "predicted_ns", e->predicted_ns);
	hd_json_close(&c->json);
}

static void put_meta(struct chrome *c, const char *what, const char *name)
{
	char fit[HD_TL_NAME_MAX + 1];

	hd_tl_name_fit(name, fit);
	open_event(c, "M", NULL, what);
	hd_json_open_object(&c->json, "args");
	hd_json_put_text(&c->json, "name", fit);
	hd_json_close(&c->json);
	close_event(c);
}

static void put_flow(struct chrome *c, const struct hd_tl_event *e)
{
	bool ends = e->kind == HD_EVENT_RECV;
	char id[20];

	open_event(c, ends ? "f" : "s", "transfer", "transfer");
	if (ends)
		hd_json_put_text(&c->json, "bp", "e");
	snprintf(id, sizeof id, "%" PRIx64, e->flow);
	hd_json_put_text(&c->json, "id", id);
	put_us(c, "ts", (ends ? e->t1 - 1 : e->t0) - c->t->begin);         /* inside its slice */
	close_event(c);
}

/* Its reader drops kernels that no call of the host within the steps has launched. */
static void put_launch(struct chrome *c, const struct hd_tl_event *e)
{
	uint64_t tid = c->tid;

	c->tid = 0;
	open_event(c, "X", "cuda_runtime", "cudaLaunchKernel");
	hd_json_put_i64(&c->json, "ts", floor_us(e->t0 - c->t->begin));
	hd_json_put_i64(&c->json, "dur", 0);
	hd_json_open_object(&c->json, "args");
	hd_json_put_i64(&c->json, "correlation", (int64_t)c->correlation);
	hd_json_close(&c->json);
	close_event(c);
	c->tid = tid;
}

static const char *category_of(const struct chrome *c, const struct hd_tl_event *e)
{
	return c->hta ? "kernel" : hd_tl_class_text(e->class);
}

/* By what a name begins and ends with its reader knows communication and copies. */
static const char *hta_prefix(uint8_t kind)
{
	bool transfer = kind == HD_EVENT_SEND || kind == HD_EVENT_RECV;

	return transfer ? "nccl:" : kind == HD_EVENT_READ ? "Memcpy " : "";
}

static void put_slice(struct chrome *c, const struct hd_tl_event *e)
{
	char name[HD_TL_NAME_MAX + 8];
	bool transfer = e->kind == HD_EVENT_SEND || e->kind == HD_EVENT_RECV;

	snprintf(name, sizeof name, "%s%.980s%s", c->hta ? hta_prefix(e->kind) : "", c->t->name[e->name],
		c->hta && transfer ? " Kernel" : "");
	open_event(c, "X", category_of(c, e), name);
	put_times(c, e, true);
	put_args(c, e);
	close_event(c);
	if (c->hta)
		put_launch(c, e);
	else if (e->flow && transfer)
		put_flow(c, e);
}

static void put_instant(struct chrome *c, const struct hd_tl_event *e)
{
	open_event(c, "i", hd_tl_class_text(e->class), c->t->name[e->name]);
	put_times(c, e, false);
	hd_json_put_text(&c->json, "s", "t");
	put_args(c, e);
	close_event(c);
}

static void put_counter(struct chrome *c, const struct hd_tl_event *e)
{
	open_event(c, "C", NULL, c->t->name[e->name]);
	put_times(c, e, false);
	hd_json_open_object(&c->json, "args");
	hd_json_put_f64(&c->json, "value", (double)e->arg);
	hd_json_close(&c->json);
	close_event(c);
}

static void put_event(struct chrome *c, const struct hd_tl_event *e)
{
	bool idle = c->hta && (e->kind == HD_EVENT_WAIT || e->kind == HD_EVENT_CLOCK);

	if (idle)
		return;
	if (e->t0 < e->t1 && e->kind != HD_EVENT_COUNTER)
		put_slice(c, e);
	else if (!c->hta && e->kind == HD_EVENT_COUNTER)
		put_counter(c, e);
	else if (!c->hta)
		put_instant(c, e);
}

static enum hd_err put_lane(struct chrome *c, uint32_t l, struct hd_arena *arena)
{
	const struct hd_tl_lane *lane = &c->t->lane[l];
	struct hd_tl_lines lines;
	enum hd_err err = hd_tl_pack(c->t, l, &lines, arena, c->out->diag);
	char name[HD_TL_NAME_MAX + 1];

	if (err)
		return err;
	for (uint32_t line = 0; line < lines.nlines; line++) {
		c->tid = (uint64_t)l << 16 | line;
		c->stream = l - c->t->process[lane->process].lane_begin + 1 + line * LINES_PER_LANE;
		snprintf(name, sizeof name, line ? "%.900s (%u)" : "%.900s", lane->name, line + 1);
		put_meta(c, "thread_name", name);
		for (uint64_t i = lines.begin[line]; i < lines.begin[line + 1]; i++)
			put_event(c, &c->t->event[lane->begin + lines.event[i]]);
	}
	return HD_OK;
}

static void put_steps(struct chrome *c, const struct hd_tl_process *p)
{
	char name[40];

	c->tid = 0;
	for (uint32_t s = p->step_begin; s < p->step_end; s++) {
		const struct hd_tl_step *step = &c->t->step[s];
		int64_t t0 = floor_us(step->begin - c->t->begin), t1 = floor_us(step->end - c->t->begin);

		snprintf(name, sizeof name, "ProfilerStep#%" PRIu64, step->number);
		open_event(c, "X", "user_annotation", name);
		hd_json_put_i64(&c->json, "ts", t0);
		hd_json_put_i64(&c->json, "dur", t1 - t0);
		close_event(c);
	}
}

/* The blank behind "rank": is what HolisticTraceAnalysis looks for. */
static void put_head(struct chrome *c, uint32_t rank, uint32_t world)
{
	char head[400];
	int64_t base = c->t->realtime_ns > 0 ? c->t->realtime_ns + c->t->begin : 0;
	int n = snprintf(head, sizeof head, "{\n\"schemaVersion\": 1,\n"
		"\"distributedInfo\": {\"backend\": \"heddle\", \"rank\": %u, \"world_size\": %u},\n"
		"\"displayTimeUnit\": \"ns\",\n\"baseTimeNanoseconds\": %" PRId64 ",\n"
		"\"heddle\": {\"lost\": %" PRIu64 ", \"unknown\": %" PRIu64 "},\n\"traceEvents\": [\n",
		rank, world, base, c->t->nlost, c->t->nunknown);

	hd_tl_out_put(c->out, head, (size_t)n);
}

static enum hd_err put_process(struct chrome *c, uint32_t p, struct hd_arena *arena)
{
	const struct hd_tl_process *process = &c->t->process[p];
	char name[HD_TL_NAME_MAX + 1];
	enum hd_err err = HD_OK;

	c->process = p;
	c->tid = 0;
	snprintf(name, sizeof name, "%.700s%s", process->name,
		process->aligned ? "" : " (clock not aligned)");
	put_meta(c, "process_name", name);
	if (c->hta)
		put_steps(c, process);
	for (uint32_t l = process->lane_begin; !err && l < process->lane_end; l++)
		err = put_lane(c, l, arena);
	return err;
}

static enum hd_err start(struct chrome **c, const struct hd_timeline *t, const struct hd_tl_sink *sink,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_tl_out *out = hd_tl_out_new(sink, arena, diag);

	*c = out ? hd_arena_take(arena, 1, sizeof **c) : NULL;
	if (!*c)
		return hd_fail(diag, HD_E_NOMEM, "no memory to write a trace");
	(*c)->t = t;
	(*c)->out = out;
	return HD_OK;
}

enum hd_err hd_tl_write_chrome(const struct hd_timeline *timeline, const struct hd_tl_sink *sink,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct chrome *c;
	enum hd_err err = start(&c, timeline, sink, arena, diag);

	if (err)
		return err;
	put_head(c, 0, timeline->nprocesses);
	for (uint32_t p = 0; !err && p < timeline->nprocesses; p++)
		err = put_process(c, p, arena);
	if (err)
		return err;
	hd_tl_out_put(c->out, "\n]}\n", 4);
	return hd_tl_out_end(c->out);
}

enum hd_err hd_tl_write_hta(const struct hd_timeline *timeline, struct hd_tl_rank rank,
	const struct hd_tl_sink *sink, struct hd_arena *arena, struct hd_diag *diag)
{
	struct chrome *c;
	enum hd_err err = start(&c, timeline, sink, arena, diag);

	if (err)
		return err;
	c->hta = true;
	c->correlation = FIRST_LAUNCH;
	put_head(c, rank.rank, rank.nranks);
	err = put_process(c, rank.process, arena);
	if (err)
		return err;
	hd_tl_out_put(c->out, "\n]}\n", 4);
	return hd_tl_out_end(c->out);
}
