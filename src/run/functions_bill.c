#include "run/functions_bill.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "sys/process.h"

#define FOLDER "functions"
#define LINE "functions 1 accepted %llu here %llu calls %llu nano_usd %lld pays %d"
#define READS "functions 1 accepted %20[0-9] here %20[0-9] calls %20[0-9] nano_usd %20[0-9] pays %1[01]%n"
#define MOST UINT64_C(1000000000000000)   /* of a number: 10^15 nano-dollars are a million */
enum { FILE_BYTES = 256, FILES = 9000 };  /* so that no sum passes 2^63 */

/* Takes a name that no process has: in a container each has the same host, or the same pid. */
static enum hd_err take_name(struct hd_fs *fs, char *path, size_t len, uint32_t *number,
	struct hd_diag *diag)
{
	enum hd_err err = HD_E_EXISTS;
	struct hd_file file = { 0 };
	struct hd_proc_self self;
	bool first = !*number;

	hd_proc_self(&self);
	while (err == HD_E_EXISTS && *number < FILES) {
		*number += first;
		snprintf(path + len, HD_PATH_CAP - len, "/%s-%u-%u", self.host, self.pid, *number);
		if (!first)
			return HD_OK;
		err = hd_file_open(fs, path, HD_OPEN_WRITE | HD_OPEN_CREATE | HD_OPEN_NEW, &file, diag);
	}
	if (!err)
		err = hd_file_close(&file, diag);
	if (err)
		*number = 0;
	return err;
}

enum hd_err hd_functions_bill_put(struct hd_fs *fs, const char *run, uint32_t *number,
	const struct hd_functions_bill *b, struct hd_diag *diag)
{
	char path[HD_PATH_CAP], line[FILE_BYTES];

	int n = snprintf(path, sizeof path, "%s/" FOLDER, run);
	if (n < 0 || (size_t)n + HD_HOST_CAP + 32 >= sizeof path)
		return hd_fail(diag, HD_E_INVAL, "%s: the path is too long", run);
	enum hd_err err = hd_fs_mkdir(fs, path, diag);
	if (!err || err == HD_E_EXISTS)   /* another worker made it */
		err = take_name(fs, path, (size_t)n, number, diag);
	if (err)
		return err;
	n = snprintf(line, sizeof line, LINE "\n", (unsigned long long)b->accepted,
		(unsigned long long)b->here, (unsigned long long)b->calls, (long long)b->nano_usd, b->pays);
	return hd_file_write_atomic(fs, path, line, (size_t)n, diag);
}

static bool add(struct hd_functions_bill *b, const char *line)
{
	char text[4][24], pays[2];
	uint64_t value[4];
	int end = 0;

	if (sscanf(line, READS, text[0], text[1], text[2], text[3], pays, &end) != 5 ||
		strcmp(line + end, "\n") != 0)
		return false;
	for (size_t i = 0; i < 4; i++)
		if (hd_num_u64(text[i], MOST, &value[i], NULL))
			return false;
	b->accepted += value[0];
	b->here += value[1];
	b->calls += value[2];
	b->nano_usd += (int64_t)value[3];
	b->pays |= pays[0] == '1';
	b->nprocesses++;
	return true;
}

/* One that is not there any more, or has no byte yet, is no error. */
static bool add_file(struct hd_functions_bill *b, struct hd_fs *fs, const char *path,
	struct hd_arena *arena)
{
	char line[FILE_BYTES + 1];
	uint8_t *bytes = NULL;
	size_t len = 0;
	enum hd_err err = hd_file_read_all(fs, path, arena, FILE_BYTES, &bytes, &len, NULL);

	if (err || !len)
		return !err || err == HD_E_NOTFOUND;
	memcpy(line, bytes, len);
	line[len] = 0;
	return add(b, line);
}

static bool is_written(const char *name)
{
	const size_t len = strlen(name);

	return len > 4 && !strcmp(name + len - 4, ".tmp");
}

void hd_functions_bill_sum(struct hd_functions_bill *b, struct hd_fs *fs, const char *run)
{
	char path[HD_PATH_CAP], **names = NULL;
	struct hd_arena arena;
	size_t n = 0;

	*b = (struct hd_functions_bill){ .accepted = 0 };
	hd_arena_init(&arena, 0);
	snprintf(path, sizeof path, "%.3900s/" FOLDER, run);
	if (hd_fs_list(fs, path, &arena, &names, &n, NULL))
		n = 0;
	for (size_t i = 0; i < n; i++) {
		if (is_written(names[i]))
			continue;
		snprintf(path, sizeof path, "%.3900s/" FOLDER "/%.120s", run, names[i]);
		if ((b->nprocesses == FILES || !add_file(b, fs, path, &arena)) && !b->unread[0])
			snprintf(b->unread, sizeof b->unread, FOLDER "/%.80s", names[i]);
	}
	hd_arena_finish(&arena);
}

const char *hd_functions_bill_say(char said[HD_FN_BILL_WORDS], const struct hd_functions_bill *b)
{
	snprintf(said, HD_FN_BILL_WORDS, "none");
	if (!b->nprocesses && !b->unread[0])
		return said;
	snprintf(said, HD_FN_BILL_WORDS, "%llu tasks by functions, %llu here, %llu calls, %lld.%09lld "
		"USD%s%s%s",
		(unsigned long long)b->accepted, (unsigned long long)b->here, (unsigned long long)b->calls,
		(long long)(b->nano_usd / 1000000000), (long long)(b->nano_usd % 1000000000),
		b->pays ? "" : " (emulated)", b->unread[0] ? "; without what is no bill: " : "", b->unread);
	return said;
}
