/* heddle drain, undrain, reserve, unreserve: devices that are kept from jobs for a time. */
#include <stdio.h>
#include <string.h>

#include "base/date.h"
#include "base/names.h"
#include "base/num.h"
#include "cmd/jobs/scheduler.h"

struct window_order {
	const char *name, *kind, *devices, *user, *account;
	double from_s, for_s;             /* 0: now; no end */
};

static enum hd_err read_span(struct hd_cmd *cmd, enum hd_opt opt, double *seconds)
{
	uint64_t ms = 0;

	if (!cmd->args.has[opt])
		return HD_OK;
	if (hd_num_duration(cmd->args.text[opt], UINT64_C(1000000000000), &ms, NULL) || ms == 0)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--%s %s: a time, as 90s, 45min, 12h or 3d",
			hd_opts[opt].name, cmd->args.text[opt]);
	*seconds = (double)ms / 1e3;
	return HD_OK;
}

/* "2h" from now, or a date of RFC 3339 in UTC that is not over. */
static enum hd_err read_when(struct hd_cmd *cmd, enum hd_opt opt, double *in_s)
{
	const char *text = cmd->args.text[opt];
	int64_t at_ns = 0;

	if (!cmd->args.has[opt] || hd_date_read(text, strlen(text), &at_ns))
		return read_span(cmd, opt, in_s);
	*in_s = (double)(at_ns - hd_clock_wall_ns(&cmd->clock)) * 1e-9;
	return *in_s > 0 ? HD_OK : hd_fail(&cmd->diag, HD_E_INVAL, "--%s %s is over", hd_opts[opt].name,
		text);
}

static enum hd_err send(struct hd_cmd *cmd, const struct window_order *o, const struct hd_json **answer)
{
	struct hd_json_writer w;
	struct hd_text text;

	hd_text_init(&text, &cmd->arena);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	hd_json_put_text(&w, "window", o->name);
	hd_json_put_text(&w, "kind", o->kind);
	hd_json_open_array(&w, "devices");
	for (const char *at = o->devices; *at;) {
		size_t len = strcspn(at, ",");
		hd_json_put_bytes(&w, NULL, at, len);
		at += len + (at[len] == ',');
	}
	hd_json_close(&w);
	if (o->from_s > 0)
		hd_json_put_f64(&w, "from_s", o->from_s);
	if (o->for_s > 0)
		hd_json_put_f64(&w, "for_s", o->for_s);
	if (o->user)
		hd_json_put_text(&w, "user", o->user);
	if (o->account)
		hd_json_put_text(&w, "account", o->account);
	if (cmd->args.has[HD_OPT_REASON])
		hd_json_put_text(&w, "reason", cmd->args.text[HD_OPT_REASON]);
	hd_json_close(&w);
	return text.full ? hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for an order") :
		hd_scheduler_ask(cmd, "POST", "/v1/windows", text.at, answer);
}

static enum hd_err show(struct hd_cmd *cmd, const struct hd_json *json)
{
	struct hd_answer_window window = { 0 };

	if (cmd->args.has[HD_OPT_JSON])
		return hd_scheduler_print(cmd, json);
	enum hd_err err = hd_fields_read(&hd_answer_window_fields, 0, json, &window, &cmd->diag);
	if (!err && !cmd->args.has[HD_OPT_QUIET])
		hd_scheduler_line(cmd, &hd_answer_window_fields, &window);
	return err;
}

static enum hd_err end_window(struct hd_cmd *cmd, const char *prefix, const char *name)
{
	const struct hd_json *answer;
	char target[200];

	if (!hd_name_valid(name))
		return hd_fail(&cmd->diag, HD_E_INVAL, "\"%.80s\" is no name; `heddle reserve` lists them",
			name);
	snprintf(target, sizeof target, "/v1/windows/%s%s/end", prefix, name);
	return hd_scheduler_ask(cmd, "POST", target, NULL, &answer);
}

static enum hd_err verb_drain(struct hd_cmd *cmd)
{
	char name[128];
	struct window_order o = { .name = name, .kind = "drain", .devices = cmd->args.pos[0] };
	const struct hd_json *answer;

	snprintf(name, sizeof name, "drain-%.80s", cmd->args.pos[0]);
	enum hd_err err = cmd->args.has[HD_OPT_REASON] ? HD_OK : hd_fail(&cmd->diag, HD_E_INVAL,
		"--reason TEXT says why, for those that wait");
	if (!err && cmd->args.has[HD_OPT_WINDOW_FOR] && cmd->args.has[HD_OPT_WINDOW_UNTIL])
		err = hd_fail(&cmd->diag, HD_E_INVAL, "--for or --until, not both");
	if (!err)
		err = read_span(cmd, HD_OPT_WINDOW_FOR, &o.for_s);
	if (!err && cmd->args.has[HD_OPT_WINDOW_UNTIL])
		err = read_when(cmd, HD_OPT_WINDOW_UNTIL, &o.for_s);
	if (!err)
		err = send(cmd, &o, &answer);
	return err ? err : show(cmd, answer);
}

const struct hd_verb hd_verb_drain = {
	.name = "drain", .args = "DEVICE", .npos_min = 1, .npos_max = 1,
	.about = "take a device of a scheduler out of service, with the reason",
	.more =
		"DEVICE is one (fast-0) or a type (fast: all of it). Jobs leave it at the end of a step, and "
		"go on elsewhere with the same bits. It is back by itself at the end, if there is one, or by "
		"`heddle undrain`.",
	.opts = HD_OPTS(HD_OPT_REASON, HD_OPT_WINDOW_FOR, HD_OPT_WINDOW_UNTIL),
	.run = verb_drain, .test = "program_windows.sh",
};

static enum hd_err verb_undrain(struct hd_cmd *cmd) { return end_window(cmd, "drain-", cmd->args.pos[0]); }

const struct hd_verb hd_verb_undrain = {
	.name = "undrain", .args = "DEVICE", .npos_min = 1, .npos_max = 1,
	.about = "bring a device of a scheduler back that was drained",
	.more = "As it was named then: a type that was drained comes back as a whole.",
	.opts = HD_OPTS(),
	.run = verb_undrain, .test = "program_windows.sh",
};

static enum hd_err list(struct hd_cmd *cmd)
{
	const struct hd_json *answer, *windows = NULL;
	enum hd_err err = hd_scheduler_ask(cmd, "GET", "/v1/windows", NULL, &answer);

	if (!err && cmd->args.has[HD_OPT_JSON])
		return hd_scheduler_print(cmd, answer);
	if (!err)
		err = hd_json_get(answer, "windows", HD_JSON_ARRAY, &windows, &cmd->diag);
	if (!err)
		hd_scheduler_head(cmd, &hd_answer_window_fields);
	for (size_t i = 0; !err && i < hd_json_count(windows); i++)
		err = show(cmd, hd_json_item(windows, i));
	return err;
}

static enum hd_err verb_reserve(struct hd_cmd *cmd)
{
	const struct hd_args *a = &cmd->args;
	bool closed = a->has[HD_OPT_MAINTENANCE];
	struct window_order o = { .kind = closed ? "maintenance" : "reserved",
		.devices = hd_args_text(a, HD_OPT_WINDOW_DEVICES, ""),
		.user = hd_args_text(a, HD_OPT_WINDOW_USER, NULL),
		.account = hd_args_text(a, HD_OPT_WINDOW_ACCOUNT, NULL) };
	const struct hd_json *answer;

	if (!a->npos)
		return list(cmd);
	o.name = a->pos[0];
	if (closed + (o.user != NULL) + (o.account != NULL) != 1)
		return hd_fail(&cmd->diag, HD_E_INVAL, "give one of --user U, --account A and --maintenance");
	if (!*o.devices || !a->has[HD_OPT_WINDOW_FOR])
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--devices TYPE:N says which devices, --for T how long");
	enum hd_err err = read_when(cmd, HD_OPT_WINDOW_FROM, &o.from_s);
	if (!err)
		err = read_span(cmd, HD_OPT_WINDOW_FOR, &o.for_s);
	if (!err)
		err = send(cmd, &o, &answer);
	return err ? err : show(cmd, answer);
}

const struct hd_verb hd_verb_reserve = {
	.name = "reserve", .args = "[NAME]", .npos_min = 0, .npos_max = 1,
	.about = "keep devices of a scheduler for a user or account, or free, for a time",
	.more =
		"Without NAME: lists what there is, drains too. Others leave a minute before it begins, at "
		"the end of a step. Jobs of the user or account get the devices in the order in which they "
		"came, until it ends; --maintenance keeps them from all.",
	.opts = HD_OPTS(HD_OPT_WINDOW_DEVICES, HD_OPT_WINDOW_FROM, HD_OPT_WINDOW_FOR, HD_OPT_WINDOW_USER,
		HD_OPT_WINDOW_ACCOUNT, HD_OPT_MAINTENANCE, HD_OPT_REASON),
	.run = verb_reserve, .test = "program_windows.sh",
};

static enum hd_err verb_unreserve(struct hd_cmd *cmd) { return end_window(cmd, "", cmd->args.pos[0]); }

const struct hd_verb hd_verb_unreserve = {
	.name = "unreserve", .args = "NAME", .npos_min = 1, .npos_max = 1,
	.about = "end a reservation or maintenance of a scheduler",
	.more = "`heddle reserve` lists them.",
	.opts = HD_OPTS(),
	.run = verb_unreserve, .test = "program_windows.sh",
};
