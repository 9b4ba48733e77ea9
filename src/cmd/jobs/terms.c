#include "cmd/jobs/terms.h"

#include <string.h>

#include "base/num.h"
#include "scheduler/terms.h"

static enum hd_err read_time(struct hd_cmd *cmd, enum hd_opt opt, double *seconds)
{
	struct hd_diag why = { "" };
	uint64_t ms = 0;

	if (!cmd->args.has[opt])
		return HD_OK;
	if (hd_num_duration(cmd->args.text[opt], UINT64_C(1000000000000), &ms, &why) || ms == 0)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--%s %s: a time, as 90s, 45min, 12h or 3d",
			hd_opts[opt].name,
			cmd->args.text[opt]);
	*seconds = (double)ms / 1e3;
	return HD_OK;
}

/* Only their form: which jobs there are the scheduler knows. */
static enum hd_err check_after(struct hd_cmd *cmd, const char *text)
{
	enum hd_after_kind kind;
	uint32_t n = 0;

	for (size_t len; text; text = text[len] ? text + len + 1 : NULL, n++) {
		len = strcspn(text, ",");
		const char *colon = memchr(text, ':', len);
		const char *word = colon ? hd_arena_text(&cmd->arena, colon + 1, (size_t)(text +
			len - colon - 1)) : NULL;
		if (!len || colon == text || (colon && (!word || !hd_after_kind_of(word, &kind))))
			return hd_fail(&cmd->diag, HD_E_INVAL, "--after %s: jobs with commas between them, "
				"each as 7, "
				"7:ok, 7:any or 7:fail", cmd->args.text[HD_OPT_AFTER]);
	}
	return n <= HD_TERMS_AFTER ? HD_OK : hd_fail(&cmd->diag, HD_E_INVAL, "--after: %u jobs, at most "
		"%d", n,
		HD_TERMS_AFTER);
}

enum hd_err hd_order_terms_read(struct hd_cmd *cmd, struct hd_order_terms *t)
{
	const struct hd_args *a = &cmd->args;
	struct hd_tasks *tasks = hd_arena_take(&cmd->arena, 1, sizeof *tasks);

	*t = (struct hd_order_terms){ .held = a->has[HD_OPT_HELD],
		.after = hd_args_text(a, HD_OPT_AFTER, NULL), .array = hd_args_text(a, HD_OPT_ARRAY, NULL),
		.partition = hd_args_text(a, HD_OPT_OF_PARTITION, NULL),
		.account = hd_args_text(a, HD_OPT_OF_ACCOUNT, NULL) };
	enum hd_err err = tasks ? HD_OK : hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for an order");
	if (!err && t->after)
		err = check_after(cmd, t->after);
	if (!err && t->array)
		err = hd_tasks_read(tasks, t->array, &cmd->diag);
	if (!err)
		err = read_time(cmd, HD_OPT_TIME, &t->limit_s);
	return err ? err : read_time(cmd, HD_OPT_EXPECT, &t->expect_s);
}

enum hd_err hd_order_first_task(struct hd_cmd *cmd, const struct hd_order_terms *t)
{
	struct hd_tasks *tasks = hd_arena_take(&cmd->arena, 1, sizeof *tasks);
	enum hd_err err = !tasks ? hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for an order") :
		t->array ? hd_tasks_read(tasks, t->array, &cmd->diag) : HD_OK;

	for (uint32_t i = 0; t->array && !err && i < cmd->args.nsets; i++) {
		struct hd_text text;
		hd_text_init(&text, &cmd->arena);
		hd_tasks_put(cmd->args.set[i], tasks->index[0], &text);
		if (text.full)
			return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for an order");
		cmd->args.set[i] = text.at;
	}
	return err;
}

void hd_order_terms_put(const struct hd_order_terms *t, struct hd_json_writer *w)
{
	const char *text = t->after;

	if (t->held)
		hd_json_put_bool(w, "held", true);
	if (t->array)
		hd_json_put_text(w, "array", t->array);
	if (t->partition)
		hd_json_put_text(w, "partition", t->partition);
	if (t->account)
		hd_json_put_text(w, "account", t->account);
	if (t->limit_s > 0)
		hd_json_put_f64(w, "limit_s", t->limit_s);
	if (t->expect_s > 0)
		hd_json_put_f64(w, "expect_s", t->expect_s);
	if (!text)
		return;
	hd_json_open_array(w, "after");
	for (size_t len; text; text = text[len] ? text + len + 1 : NULL) {
		len = strcspn(text, ",");
		hd_json_put_bytes(w, NULL, text, len);
	}
	hd_json_close(w);
}
