#include "cmd/jobs/serve.h"

#include <string.h>

#include "daemon/backup.h"
#include "daemon/http_client.h"
#include "cmd/json_line.h"
#include "cmd/jobs/scheduler.h"

/* The scheduler that serves copies its own store: no other process can read it. Without one it is read as it
 * lies there. */

#define HD_BACKUP_WAIT_NS INT64_C(600000000000)       /* the answer comes when the copy is on the disk */

static enum hd_err absolute(struct hd_cmd *cmd, const char *asked, char full[HD_PATH_CAP])
{
	char here[HD_PATH_CAP];
	enum hd_err err = hd_proc_folder(here, sizeof here, &cmd->diag);
	bool rooted = asked[0] == '/';

	if (!err && (size_t)snprintf(full, HD_PATH_CAP, "%s%s%s", rooted ? "" : here, rooted ? "" : "/",
		asked) >= HD_PATH_CAP / 2)
		err = hd_fail(&cmd->diag, HD_E_INVAL, "the path of %.80s is too long", asked);
	return err;
}

static enum hd_err print_backup(struct hd_cmd *cmd, const struct hd_json *answer)
{
	struct hd_answer_backup made = { 0 };
	enum hd_err err = hd_fields_read(&hd_answer_backup_fields, 0, answer, &made, &cmd->diag);

	if (!err)
		printf("%s  %lld jobs, the last is %lld; %lld bytes; its jobs.sqlite has SHA-256 %s\n",
			made.folder, (long long)made.jobs, (long long)made.last, (long long)made.size_bytes,
			made.sha256);
	return err;
}

/* As the scheduler would answer. */
static enum hd_err print_made(struct hd_cmd *cmd, const struct hd_backup *made, const char *folder)
{
	const struct hd_json *json = NULL;
	struct hd_json_writer w;
	struct hd_text text;

	hd_text_init(&text, &cmd->arena);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	hd_backup_put(made, folder, &w);
	hd_json_close(&w);
	if (text.full)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the answer");
	enum hd_err err = hd_json_parse(&cmd->arena, "answer", text.at, text.len, &json, &cmd->diag);
	if (err)
		return err;
	return cmd->args.has[HD_OPT_JSON] ? hd_scheduler_print(cmd, json) : print_backup(cmd, json);
}

enum hd_err hd_serve_backup(struct hd_cmd *cmd)
{
	const char *dir = hd_scheduler_dir(cmd);
	const struct hd_json *answer = NULL;
	char folder[HD_PATH_CAP];
	struct hd_json_writer w;
	struct hd_backup made;
	struct hd_text body;
	enum hd_err err = absolute(cmd, cmd->args.text[HD_OPT_BACKUP], folder);

	if (err)
		return err;
	hd_text_init(&body, &cmd->arena);
	hd_json_writer_init(&w, &body);
	hd_json_open_object(&w, NULL);
	hd_json_put_text(&w, "folder", folder);
	hd_json_close(&w);
	if (body.full)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory to ask");
	const struct hd_http_call call = { dir, "POST", "/v1/backup", body.at, HD_BACKUP_WAIT_NS };
	struct hd_diag why = { "" };
	err = hd_http_ask(&call, &cmd->arena, &answer, &why);
	if (!err)
		return cmd->args.has[HD_OPT_JSON] ? hd_scheduler_print(cmd, answer) : print_backup(cmd,
			answer);
	if (err != HD_E_NOTFOUND)
		return hd_fail(&cmd->diag, err, "%s", why.text);
	err = hd_backup_make(&cmd->fs, dir, NULL, hd_clock_wall_ns(&cmd->clock) / 1000000, folder, &made,
		&cmd->diag);
	return err ? err : print_made(cmd, &made, folder);
}

static void says(void *user, uint64_t job, const char *run, const char *what)
{
	const struct hd_cmd *cmd = user;

	if (!cmd->args.has[HD_OPT_QUIET])
		fprintf(stderr, ">> job %llu  %s  %s\n", (unsigned long long)job, run, what);
}

enum hd_err hd_serve_restore(struct hd_cmd *cmd)
{
	const char *dir = hd_scheduler_dir(cmd);
	const struct hd_json *answer = NULL;
	struct hd_restored found = { 0 };
	struct hd_backup backup = { 0 };
	char full[HD_PATH_CAP];
	const struct hd_http_call call = { dir, "GET", "/v1/policies", NULL, HD_BACKUP_WAIT_NS };
	enum hd_err err = absolute(cmd, dir, full);

	/* one whose store was moved away under it serves on */
	if (!err && hd_http_ask(&call, &cmd->arena, &answer, NULL) != HD_E_NOTFOUND)
		err = hd_fail(&cmd->diag, HD_E_AGAIN,
			"a scheduler serves %s: end it first (SIGTERM, or POST /v1/stop), then restore",
			dir);
	err = err ? err : hd_backup_restore(&cmd->fs, full, cmd->args.text[HD_OPT_RESTORE],
		hd_clock_wall_ns(&cmd->clock) / 1000000, says, cmd, &backup, &found, &cmd->diag);
	if (err)
		return err;
	if (cmd->args.has[HD_OPT_JSON])
		printf("{\"jobs\":%llu,\"last\":%llu,\"ran\":%llu,\"done\":%llu,\"unknown\":%llu,"
			"\"gone\":%llu,\"sha256\":\"%s\"}\n", (unsigned long long)backup.jobs,
			(unsigned long long)backup.last, (unsigned long long)found.ran,
			(unsigned long long)found.done, (unsigned long long)found.unknown,
			(unsigned long long)found.gone, backup.digest);
	else
		printf("%llu jobs restored, the last is %llu: %llu ran since, %llu of them are done; %llu "
			"runs of later jobs stay without one; %llu jobs have no folder\n",
			(unsigned long long)backup.jobs, (unsigned long long)backup.last,
			(unsigned long long)found.ran, (unsigned long long)found.done,
			(unsigned long long)found.unknown, (unsigned long long)found.gone);
	return HD_OK;
}
