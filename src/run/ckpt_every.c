#include "run/ckpt_every.h"

#include <stdio.h>
#include <string.h>

#include "base/num.h"

enum hd_err hd_ckpt_every_put(struct hd_rundir *dir, const struct hd_saving *saving, struct hd_diag *diag)
{
	char text[HD_SAVING_TEXT];
	const size_t len = hd_saving_put(saving, text);

	return hd_rundir_put(dir, HD_RUN_CKPT_EVERY, text, len, diag);
}

bool hd_ckpt_every_get(struct hd_saving *saving, struct hd_fs *fs, const char *folder)
{
	struct hd_file file = { 0 };
	char text[HD_SAVING_TEXT];
	size_t got = 0;

	if (hd_file_open_beneath(fs, folder, HD_RUN_CKPT_EVERY, HD_OPEN_READ, &file, NULL))
		return false;
	enum hd_err err = hd_file_read(&file, text, sizeof text, &got, NULL);
	(void)!hd_file_close(&file, NULL);
	return !err && hd_saving_take(saving, text, got);
}

#define TOOK ", training stood "

void hd_ckpt_done_say(char *out, size_t cap, uint64_t step, uint64_t len_bytes, double took_s)
{
	snprintf(out, cap, "step %llu, %.1f MiB" TOOK "%.6f s", (unsigned long long)step,
		(double)len_bytes / 0x1p20, took_s);
}

bool hd_ckpt_done_took(const char *text, double *took_s)
{
	const char *at = strstr(text, TOOK);
	char number[40];

	if (!at)
		return false;
	at += strlen(TOOK);
	snprintf(number, sizeof number, "%.*s", (int)strspn(at, "0123456789."), at);
	return !hd_num_f64(number, 0, 1e9, took_s, NULL);
}
