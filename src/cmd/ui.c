#include <stdarg.h>
#include <string.h>

#include "base/json_writer.h"
#include "sys/tty.h"
#include "cmd/session.h"

enum { HD_QUIET_LINES_NS = 1000000000, HD_REWRITE_NS = 100000000, HD_PLAIN_FACTOR = 10 };

void hd_time_text(double seconds, char text[32])
{
	uint64_t s = seconds > 0 ? (uint64_t)(seconds + 0.5) : 0;

	if (s < 60)
		snprintf(text, 32, "%llu s", (unsigned long long)s);
	else if (s < 3600)
		snprintf(text, 32, "%llu m %02llu s", (unsigned long long)s / 60, (unsigned long long)s % 60);
	else
		snprintf(text, 32, "%llu h %02llu m", (unsigned long long)s / 3600,
			(unsigned long long)s / 60 % 60);
}

void hd_ui_init(struct hd_ui *ui, struct hd_cmd *cmd)
{
	*ui = (struct hd_ui){ .cmd = cmd, .events = cmd->args.has[HD_OPT_EVENTS] ? stdout : NULL };
}

void hd_ui_end(struct hd_ui *ui)
{
	if (ui->line_open)
		fputc('\n', stderr);
	ui->line_open = false;
}

void hd_ui_say(struct hd_ui *ui, const char *fmt, ...)
{
	va_list args;

	if (ui->cmd->args.has[HD_OPT_QUIET])
		return;
	hd_ui_end(ui);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
}

/* "4/4/4/4": virtual nodes of each device, for as many devices as fit; of a pipeline its stages. */
static void split_text(const struct hd_progress *p, char *text, size_t cap)
{
	const struct hd_plan *plan = p->plan;
	size_t at = 0;

	if (p->nstages) {
		snprintf(text, cap, p->npipes > 1 ? "%u stages, %u pipelines" : "%u stages", p->nstages,
			p->npipes);
		return;
	}
	if (plan->first && hd_plan_width(plan) > 1) {
		snprintf(text, cap, "%u stage%s, %u devices a rank", plan->nstages, plan->nstages == 1 ?
			"" : "s",
			plan->tensor);
		return;
	}
	if (plan->first) {
		snprintf(text, cap, "%u stages", plan->nstages);
		return;
	}

	for (uint32_t r = 0; r < plan->nranks && at + 12 < cap; r++) {
		uint32_t n = 0;
		for (uint32_t v = 0; v < plan->nvns; v++)
			n += plan->map[v] == r;
		at += (size_t)snprintf(text + at, cap - at, "%s%u", r ? "/" : "", n);
	}
}

static void step_line(const struct hd_progress *p, char *line, size_t cap)
{
	char split[64], eta[32];

	split_text(p, split, sizeof split);
	hd_time_text(p->eta_s, eta);
	snprintf(line, cap,
		"step %llu/%llu  loss %.4f  lr %.2g  %.0f samples/s  devices %u (%u vn: %s)  step %.3g ms "
		"p50 %.3g p99 %.3g  wait %.0f %%  eta %s",
		(unsigned long long)p->record.step + 1, (unsigned long long)p->nsteps, p->loss,
		(double)p->record.lr, p->samples_per_s,
		p->plan->nranks, p->plan->nvns, split, p->step_ms, hd_times_quantile(p->times, 0.5),
		hd_times_quantile(p->times, 0.99),
		p->wait_share * 100, eta);
}

static void on_step(void *user, const struct hd_progress *p)
{
	struct hd_ui *ui = user;
	bool verbose = ui->cmd->args.has[HD_OPT_VERBOSE], first = ui->steps++ == 0;
	int64_t now_ns = hd_clock_now_ns(&ui->cmd->clock);
	int64_t wait_ns = ui->cmd->rewrite ? HD_REWRITE_NS : (int64_t)HD_PLAIN_FACTOR * HD_QUIET_LINES_NS;
	bool last = p->record.step + 1 == p->nsteps || (ui->cmd->args.has[HD_OPT_STEPS] &&
		p->record.step + 1 == ui->cmd->args.count[HD_OPT_STEPS]);
	char line[512];

	if (first)
		ui->first_loss = p->loss;
	ui->last_loss = p->loss;
	if (ui->cmd->args.has[HD_OPT_QUIET] || (!first && !last && !verbose &&
		now_ns - ui->shown_ns < wait_ns))
		return;
	ui->shown_ns = now_ns;
	step_line(p, line, sizeof line);
	if (!ui->cmd->rewrite) {
		fprintf(stderr, "%s\n", line);
		return;
	}
	unsigned width = hd_tty_width(2);
	fprintf(stderr, "\r\x1b[K%.*s", (int)(width > 1 ? width - 1 : 1), line);
	fflush(stderr);
	ui->line_open = true;
}

static void on_eval(void *user, uint64_t step, const char *split, const struct hd_metrics *m)
{
	struct hd_ui *ui = user;
	char text[HD_METRICS_LINE];

	hd_metrics_line(m, text);
	hd_ui_say(ui, "eval step %llu  %s  %s", (unsigned long long)step, split, text);
}

/* kind of an event -> the mark its line begins with; others are not shown */
static const struct { const char *kind, *mark; } marks[] = {
	{ "choice", "  " }, { "plan", ">>" }, { "predicted", ">>" }, { "warning", "!!" },
		{ "checkpoint_bad", "!!" },
		{ "checkpoint_done", "ck" },
	{ "judged", ">>" }, { "listening", ">>" }, { "place", ">>" }, { "queue", ">>" }, { "failing", "!!" },
	{ "waits", ">>" }, { "given_up", "!!" }, { "restore", "!!" }, { "again", "!!" },
};

static void on_note(void *user, const char *kind, const char *text)
{
	struct hd_ui *ui = user;

	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
		if (!strcmp(marks[i].kind, kind))
			hd_ui_say(ui, "%s %s", marks[i].mark, text);
	if (ui->events) {
		char room[1200];
		struct hd_text line;
		struct hd_json_writer w;
		hd_text_fixed(&line, room, sizeof room);
		hd_json_writer_init(&w, &line);
		hd_json_open_object(&w, NULL);
		hd_json_put_text(&w, "kind", kind);
		hd_json_put_text(&w, "text", text);
		hd_json_close(&w);
		fprintf(ui->events, "%s\n", room);
	}
}

/* One write, which the lines of other threads do not cut. */
static void on_waits(void *user, const char *text)
{
	const struct hd_ui *ui = user;

	if (!ui->cmd->args.has[HD_OPT_QUIET])
		fprintf(stderr, "%s>> %s\n", ui->cmd->rewrite ? "\n" : "", text);
}

struct hd_run_watch hd_ui_watch(struct hd_ui *ui)
{
	return (struct hd_run_watch){ .user = ui, .step = on_step, .eval = on_eval, .note = on_note,
		.waits = on_waits };
}
