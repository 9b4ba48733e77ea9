#include "run/functions_bill.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "sys/process.h"

#define FOLDER "functions"
#define LINE "functions 1 accepted %llu here %llu calls %llu nano_usd %lld pays %d"
#define READS "functions 1 accepted %llu here %llu calls %llu nano_usd %lld pays %d%n"
enum { FILE_BYTES = 256 };

enum hd_err hd_functions_bill_put(struct hd_fs *fs, const char *run, const struct hd_functions_bill *b,
	struct hd_diag *diag)
{
	char path[HD_PATH_CAP], line[FILE_BYTES];
	struct hd_proc_self self;
	struct hd_stat stat;

	hd_proc_self(&self);
	int n = snprintf(path, sizeof path, "%s/" FOLDER, run);
	if (n < 0 || (size_t)n + 16 >= sizeof path)
		return hd_fail(diag, HD_E_INVAL, "%s: the path is too long", run);
	enum hd_err err = hd_fs_stat(fs, path, &stat, NULL) ? hd_fs_mkdir(fs, path, diag) : HD_OK;
	if (err)
		return err;
	snprintf(path + n, sizeof path - (size_t)n, "/%u", self.pid);
	n = snprintf(line, sizeof line, LINE "\n", (unsigned long long)b->accepted,
		(unsigned long long)b->here, (unsigned long long)b->calls, (long long)b->nano_usd, b->pays);
	return hd_file_write_atomic(fs, path, line, (size_t)n, diag);
}

static void add(struct hd_functions_bill *b, const char *line)
{
	unsigned long long accepted, here, calls;
	int pays, end = 0;
	long long nano;

	if (sscanf(line, READS, &accepted, &here, &calls, &nano, &pays, &end) != 5 ||
		strcmp(line + end, "\n") != 0)
		return;
	b->accepted += accepted;
	b->here += here;
	b->calls += calls;
	b->nano_usd += nano;
	b->pays |= pays != 0;
	b->nprocesses++;
}

void hd_functions_bill_sum(struct hd_functions_bill *b, struct hd_fs *fs, const char *run)
{
	char path[HD_PATH_CAP], line[FILE_BYTES + 1], **names = NULL;
	struct hd_arena arena;
	uint8_t *bytes;
	size_t n = 0, len;

	*b = (struct hd_functions_bill){ .accepted = 0 };
	hd_arena_init(&arena, 0);
	snprintf(path, sizeof path, "%.4000s/" FOLDER, run);
	if (hd_fs_list(fs, path, &arena, &names, &n, NULL))
		n = 0;
	for (size_t i = 0; i < n; i++) {
		snprintf(path, sizeof path, "%.4000s/" FOLDER "/%.40s", run, names[i]);
		if (hd_file_read_all(fs, path, &arena, FILE_BYTES, &bytes, &len, NULL))
			continue;
		memcpy(line, bytes, len);
		line[len] = 0;
		add(b, line);
	}
	hd_arena_finish(&arena);
}

const char *hd_functions_bill_say(char said[HD_FN_BILL_WORDS], const struct hd_functions_bill *b)
{
	if (!b->nprocesses)
		return "none";
	snprintf(said, HD_FN_BILL_WORDS, "%llu tasks by functions, %llu here, %llu calls, %lld.%09lld USD%s",
		(unsigned long long)b->accepted, (unsigned long long)b->here, (unsigned long long)b->calls,
		(long long)(b->nano_usd / 1000000000), (long long)(b->nano_usd % 1000000000),
		b->pays ? "" : " (emulated)");
	return said;
}
