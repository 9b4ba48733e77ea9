#include "cmd/run/detach.h"

#include <string.h>

#include "cmd/json_line.h"

enum { HD_DETACH_LOG = 4096 };

/* The last line of the log, "heddle: why". The folder that it lies in may be gone already. */
static enum hd_err tell_end(struct hd_cmd *cmd, const struct hd_file *log, int code)
{
	char room[HD_DETACH_LOG + 1] = "", *line = room, *end;
	size_t got = HD_DETACH_LOG;

	for (int64_t at = 0; got == HD_DETACH_LOG; at += HD_DETACH_LOG / 2)
		if (hd_file_pread(log, room, HD_DETACH_LOG, at, &got, NULL))
			got = 0;
	while (got && room[got - 1] == '\n')
		got--;
	room[got] = '\0';
	if ((end = strrchr(room, '\n')))
		line = end + 1;
	line += strncmp(line, "heddle: ", 8) ? 0 : 8;
	return hd_fail(&cmd->diag, hd_err_of_exit(code), "%s",
		*line ? line : "the run ended before it had begun");
}

static void tell_where(struct hd_cmd *cmd, const struct hd_rundir *dir, int pid)
{
	struct hd_json_line line;

	if (cmd->args.has[HD_OPT_JSON]) {
		struct hd_json_writer *w = hd_json_line_open(cmd, &line);
		hd_json_put_text(w, "run", dir->path);
		hd_json_put_i64(w, "pid", pid);
		hd_json_line_print(&line);
	} else if (!cmd->args.has[HD_OPT_QUIET]) {
		fprintf(stderr, ">> %s goes on without this terminal, as process %d\n", dir->path, pid);
		fprintf(stderr, "   to look: heddle status %s, or tail -f %s/log/run.log\n", dir->path,
			dir->path);
		fprintf(stderr, "   to end it with a checkpoint: heddle stop %s\n", dir->path);
	}
}

enum hd_err hd_detach(struct hd_cmd *cmd, const struct hd_rundir *dir, bool *stays)
{
	char log[HD_PATH_CAP];
	struct hd_file file = { 0 };
	int code = 0;

	*stays = false;
	if (!cmd->args.has[HD_OPT_DETACH])
		return HD_OK;
	hd_rundir_path(dir, "log/run.log", log, sizeof log);
	enum hd_err err = hd_proc_detach(&cmd->detached, log, &cmd->diag);
	if (err)
		return err;
	if (!cmd->detached.pid) {
		cmd->rewrite = cmd->colour = false;
		return HD_OK;
	}
	*stays = true;
	enum hd_err opened = hd_file_open(&cmd->fs, log, HD_OPEN_READ, &file, NULL);
	err = hd_proc_await(&cmd->detached, &code, &cmd->diag);
	if (err == HD_E_AGAIN)
		err = opened ? hd_fail(&cmd->diag, hd_err_of_exit(code),
			"the run ended before it had begun") : tell_end(cmd, &file, code);
	else if (!err)
		tell_where(cmd, dir, cmd->detached.pid);
	(void)!hd_file_close(&file, NULL);
	return err;
}

void hd_detach_begun(struct hd_cmd *cmd) { hd_proc_begun(&cmd->detached); }
