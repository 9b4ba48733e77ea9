#include "driver/successor.h"

#include <stdio.h>

#include "driver/driver.h"

static bool is_missing(const struct hd_successor *s, const char *name)
{
	char path[HD_PATH_CAP];
	struct hd_stat stat;

	snprintf(path, sizeof path, "%s/%s", s->dir, name);
	return hd_fs_stat(s->fs, path, &stat, NULL) == HD_E_NOTFOUND;
}

/* One that finds another coordinator is no failure. What fails alike again and again would be seen by no user
 * if this process did not say it. */
static void judge(struct hd_successor *s, int code)
{
	bool failed = code && code != hd_err_exit(HD_E_AGAIN);

	s->nfailed = !failed ? 0 : code == s->failed_code ? s->nfailed + 1 : 1;
	s->failed_code = code;
	if (s->nfailed == HD_SUCCESSOR_TRIES)
		s->failing(s->user, s->nfailed, code);
}

static enum hd_err spawn(struct hd_successor *s, struct hd_diag *diag)
{
	char path[HD_PATH_CAP];
	struct hd_file log = { 0 };

	snprintf(path, sizeof path, "%s/" HD_SUCCESSOR_LOG, s->dir);
	enum hd_err err = hd_file_open(s->fs, path, HD_OPEN_WRITE | HD_OPEN_CREATE | HD_OPEN_APPEND, &log,
		diag);
	if (!err)
		err = hd_proc_spawn(s->host, &(struct hd_spawn){ .argv = s->argv, .in = -1, .out = log.id,
			.err = log.id }, &s->proc, diag);
	if (log.fs && hd_file_close(&log, NULL) && !err)
		err = HD_E_IO;
	return err == HD_E_NOTFOUND ? HD_E_IO : err;      /* of another file: it may come back */
}

enum hd_err hd_successor_start(struct hd_successor *s, struct hd_diag *diag)
{
	int code;

	if (is_missing(s, HD_RUN_JOB))
		return hd_fail(diag, HD_E_NOTFOUND,
			"the run's folder %s is gone and so is its coordinator: nothing that is computed "
			"could be kept", s->dir);
	if (is_missing(s, HD_DRIVER_STORE))
		return HD_OK;
	if (s->proc.host) {
		enum hd_err err = hd_proc_wait(&s->proc, 0, &code, NULL);
		if (err == HD_E_AGAIN)
			return HD_OK;
		if (!err)
			judge(s, code);
	}
	s->proc = (struct hd_proc){ 0 };
	return spawn(s, diag);
}
