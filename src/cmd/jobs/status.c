/* heddle status, heddle top of a scheduler: devices, jobs that run, jobs that wait and why. */
#include <string.h>

#include "sys/signal.h"
#include "cmd/jobs/scheduler.h"
#include "cmd/run/live.h"

enum { HD_WAITING_SHOWN = 20, HD_EVERY_MS = 1000, HD_EVERY_LEAST_MS = 50 };

struct view { const struct hd_json *status, *waiting; };

static enum hd_err look(struct hd_cmd *cmd, struct view *v)
{
	char target[60];
	enum hd_err err = hd_scheduler_ask(cmd, "GET", "/v1/status", NULL, &v->status);

	snprintf(target, sizeof target, "/v1/jobs?state=queued&limit=%d", HD_WAITING_SHOWN);
	return err ? err : hd_scheduler_ask(cmd, "GET", target, NULL, &v->waiting);
}

static enum hd_err print_head(struct hd_cmd *cmd, const struct hd_json *s, int64_t *queued)
{
	const struct hd_json *counts = NULL;
	struct hd_answer_status status = { 0 };
	struct hd_text text;
	enum hd_err err = hd_fields_read(&hd_answer_status_fields, 0, s, &status, &cmd->diag);

	if (!err)
		err = hd_json_get(s, "counts", HD_JSON_OBJECT, &counts, &cmd->diag);
	if (err)
		return err;
	hd_text_init(&text, &cmd->arena);
	hd_fields_say(&hd_answer_status_fields, &status, "{dir}  policy {policy}  rounds of {round_s} s",
		&text);
	hd_text_addf(&text, "  next in %.1f s\njobs:", status.boundary_s > status.now_s ?
		status.boundary_s - status.now_s : 0);
	*queued = 0;
	for (size_t i = 0; i < hd_json_count(counts) && !err; i++) {
		int64_t n = 0;
		err = hd_json_as_i64(hd_json_item(counts, i), 0, INT64_MAX, &n, &cmd->diag);
		if (!strcmp(hd_json_key(counts, i), "queued"))
			*queued = n;
		hd_text_addf(&text, "  %s %lld", hd_json_key(counts, i), (long long)n);
	}
	printf("%s\n", text.at);
	if (*status.late)
		printf("%s\n", status.late);
	return err;
}

/* A scheduler before this one says nothing of hosts. */
static enum hd_err print_slow(struct hd_cmd *cmd, const struct hd_json *s)
{
	const struct hd_json *slow = hd_json_find(s, "slow");
	struct hd_answer_host host = { 0 };
	enum hd_err err = HD_OK;

	for (size_t i = 0; slow && !err && i < hd_json_count(slow); i++) {
		err = hd_fields_read(&hd_answer_host_fields, 0, hd_json_item(slow, i), &host, &cmd->diag);
		if (!err)
			printf("%s\n", host.text);
	}
	return err;
}

/* A scheduler before this one says nothing of windows. */
static enum hd_err print_windows(struct hd_cmd *cmd, const struct hd_json *s)
{
	const struct hd_json *windows = hd_json_find(s, "windows");
	struct hd_answer_window window = { 0 };
	enum hd_err err = HD_OK;

	if (windows && hd_json_count(windows))
		hd_scheduler_head(cmd, &hd_answer_window_fields);
	for (size_t i = 0; windows && !err && i < hd_json_count(windows); i++) {
		err = hd_fields_read(&hd_answer_window_fields, 0, hd_json_item(windows, i), &window,
			&cmd->diag);
		if (!err)
			hd_scheduler_line(cmd, &hd_answer_window_fields, &window);
	}
	return err;
}

/* A scheduler before this one says nothing of partitions. */
static enum hd_err print_partitions(struct hd_cmd *cmd, const struct hd_json *s)
{
	const struct hd_json *partitions = hd_json_find(s, "partitions");
	struct hd_answer_partition partition = { 0 };
	const char *wrong = "";
	enum hd_err err = HD_OK;

	if (partitions && hd_json_count(partitions))
		hd_scheduler_head(cmd, &hd_answer_partition_fields);
	for (size_t i = 0; partitions && !err && i < hd_json_count(partitions); i++) {
		err = hd_fields_read(&hd_answer_partition_fields, 0, hd_json_item(partitions, i), &partition,
			&cmd->diag);
		if (!err)
			hd_scheduler_line(cmd, &hd_answer_partition_fields, &partition);
	}
	if (!err && hd_json_find(s, "partitions_wrong"))
		err = hd_json_get_text(s, "partitions_wrong", &wrong, &cmd->diag);
	if (!err && *wrong)
		printf("%s\n", wrong);
	return err;
}

enum { ACCOUNTS_SHOWN = 1000 };                   /* that a scheduler answers with (answers.h) */

/* As a tree; a scheduler before this one says nothing of accounts. */
static enum hd_err print_accounts(struct hd_cmd *cmd, const struct hd_json *s)
{
	const struct hd_json *accounts = hd_json_find(s, "accounts");
	struct hd_answer_account account = { 0 };
	char name[120];
	enum hd_err err = HD_OK;

	if (accounts && hd_json_count(accounts) >= ACCOUNTS_SHOWN)
		printf("%d accounts are shown at most; a user sees its own\n", ACCOUNTS_SHOWN);
	if (accounts && hd_json_count(accounts))
		hd_scheduler_head(cmd, &hd_answer_account_fields);
	for (size_t i = 0; accounts && !err && i < hd_json_count(accounts); i++) {
		err = hd_fields_read(&hd_answer_account_fields, 0, hd_json_item(accounts, i), &account,
			&cmd->diag);
		if (err)
			break;
		int indent = (int)(account.level < 16 ? 2 * account.level : 32);
		snprintf(name, sizeof name, "%*s%.64s", indent, "", account.name);
		account.name = name;
		hd_scheduler_line(cmd, &hd_answer_account_fields, &account);
	}
	return err;
}

static enum hd_err print_devices(struct hd_cmd *cmd, const struct hd_json *s)
{
	const struct hd_json *types = NULL;
	struct hd_answer_type type = { 0 };
	enum hd_err err = hd_json_get(s, "types", HD_JSON_ARRAY, &types, &cmd->diag);

	if (!err)
		hd_scheduler_head(cmd, &hd_answer_type_fields);
	for (size_t i = 0; !err && i < hd_json_count(types); i++) {
		err = hd_fields_read(&hd_answer_type_fields, 0, hd_json_item(types, i), &type, &cmd->diag);
		if (!err)
			hd_scheduler_line(cmd, &hd_answer_type_fields, &type);
	}
	return err;
}

/* Of a scheduler whose devices are of its machine there are none. */
static enum hd_err print_lent(struct hd_cmd *cmd, const struct hd_json *s)
{
	const struct hd_json *lent = hd_json_find(s, "lent");
	struct hd_answer_lent of = { 0 };
	enum hd_err err = HD_OK;

	if (lent && hd_json_count(lent))
		hd_scheduler_head(cmd, &hd_answer_lent_fields);
	for (size_t i = 0; lent && !err && i < hd_json_count(lent); i++) {
		err = hd_fields_read(&hd_answer_lent_fields, 0, hd_json_item(lent, i), &of, &cmd->diag);
		if (!err)
			hd_scheduler_line(cmd, &hd_answer_lent_fields, &of);
	}
	return err;
}

static enum hd_err print_jobs(struct hd_cmd *cmd, const struct hd_json *in, const char *key, bool *headed,
	size_t *n)
{
	const struct hd_json *list = NULL;
	struct hd_answer_job job = { 0 };
	enum hd_err err = hd_json_get(in, key, HD_JSON_ARRAY, &list, &cmd->diag);

	*n = err ? 0 : hd_json_count(list);
	if (*n && !*headed)
		hd_scheduler_head(cmd, &hd_answer_job_fields);
	*headed |= *n > 0;
	for (size_t i = 0; i < *n && !err; i++) {
		err = hd_fields_read(&hd_answer_job_fields, 0, hd_json_item(list, i), &job, &cmd->diag);
		if (!err)
			hd_scheduler_line(cmd, &hd_answer_job_fields, &job);
	}
	return err;
}

static enum hd_err print(struct hd_cmd *cmd, const struct view *v)
{
	int64_t queued = 0;
	bool headed = false;
	size_t n = 0;
	enum hd_err err = print_head(cmd, v->status, &queued);

	if (!err)
		err = print_slow(cmd, v->status);
	if (!err)
		err = print_devices(cmd, v->status);
	if (!err)
		err = print_lent(cmd, v->status);
	if (!err)
		err = print_windows(cmd, v->status);
	if (!err)
		err = print_partitions(cmd, v->status);
	if (!err)
		err = print_accounts(cmd, v->status);
	if (!err)
		err = print_jobs(cmd, v->status, "running", &headed, &n);
	if (!err)
		err = print_jobs(cmd, v->waiting, "jobs", &headed, &n);
	if (!err && queued > (int64_t)n)
		printf("and %lld more that wait: `heddle jobs --state queued` lists them\n",
			(long long)(queued - (int64_t)n));
	return err;
}

static enum hd_err once(struct hd_cmd *cmd, bool clear)
{
	struct view v;
	enum hd_err err = look(cmd, &v);

	if (err)
		return err;
	if (cmd->args.has[HD_OPT_JSON])
		err = hd_scheduler_print(cmd, v.status);
	else {
		if (clear && cmd->rewrite)
			printf("\033[H\033[2J");
		err = print(cmd, &v);
	}
	fflush(stdout);
	return err;
}

enum hd_err hd_scheduler_status(struct hd_cmd *cmd, bool again, bool clear)
{
	uint64_t every = hd_args_count(&cmd->args, HD_OPT_EVERY, HD_EVERY_MS);
	enum hd_err err = every >= HD_EVERY_LEAST_MS ? once(cmd, clear) :
		hd_fail(&cmd->diag, HD_E_INVAL, "--every is at least %d (milliseconds)", HD_EVERY_LEAST_MS);

	if (err || !again)
		return err;
	struct hd_reach_misses misses = { 0 };
	err = hd_signal_install(&cmd->diag);
	while (!err && !hd_signal_stop()) {
		hd_arena_reset(&cmd->arena);
		hd_clock_wait_until(&cmd->clock, hd_clock_now_ns(&cmd->clock) + (int64_t)every * 1000000);
		err = hd_signal_stop() ? HD_OK : once(cmd, clear);
		err = hd_reach_missed(&misses, err) ? HD_OK : err;
	}
	return err == HD_E_NOTFOUND ? HD_OK : err;        /* it was there, and ended */
}
