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
#define FROM " from %16[0-9a-f]%n"
enum { FILE_BYTES = HD_FN_BILL_LINE, FILES = 9000 };      /* so that no sum passes 2^63 */

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

/* *len of the path of the folder, which is there then. */
static enum hd_err take_folder(struct hd_fs *fs, const char *run, char path[HD_PATH_CAP], size_t *len,
	struct hd_diag *diag)
{
	const int n = snprintf(path, HD_PATH_CAP, "%s/" FOLDER, run);

	if (n < 0 || (size_t)n + HD_HOST_CAP + 32 >= HD_PATH_CAP)
		return hd_fail(diag, HD_E_INVAL, "%s: the path is too long", run);
	*len = (size_t)n;
	enum hd_err err = hd_fs_mkdir(fs, path, diag);
	return err == HD_E_EXISTS ? HD_OK : err;  /* another worker made it */
}

static size_t print(char line[FILE_BYTES], const struct hd_functions_bill *b)
{
	return (size_t)snprintf(line, FILE_BYTES, LINE "\n", (unsigned long long)b->accepted,
		(unsigned long long)b->here, (unsigned long long)b->calls, (long long)b->nano_usd, b->pays);
}

enum hd_err hd_functions_bill_put(struct hd_fs *fs, const char *run, uint32_t *number,
	const struct hd_functions_bill *b, struct hd_diag *diag)
{
	char path[HD_PATH_CAP], line[FILE_BYTES];
	size_t n = 0;

	enum hd_err err = take_folder(fs, run, path, &n, diag);
	if (!err)
		err = take_name(fs, path, n, number, diag);
	return err ? err : hd_file_write_atomic(fs, path, line, print(line, b), diag);
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

const char *hd_functions_bill_note(char line[HD_FN_BILL_LINE], const struct hd_functions_bill *b,
	uint64_t from)
{
	const size_t n = print(line, b) - 1;

	snprintf(line + n, FILE_BYTES - n, " from %016llx", (unsigned long long)from);
	return line;
}

enum hd_err hd_functions_bill_put_far(struct hd_fs *fs, const char *run, const char *note,
	struct hd_diag *diag)
{
	struct hd_functions_bill bill = { .accepted = 0 };
	char path[HD_PATH_CAP], line[FILE_BYTES], from[17];
	const char *at = strstr(note, " from ");
	size_t n = at ? (size_t)(at - note) : 0;
	int end = 0;

	if (!n || n + 2 > sizeof line || sscanf(at, FROM, from, &end) != 1 || strlen(from) != 16 || at[end])
		return hd_fail(diag, HD_E_PROTOCOL, "a worker's bill of functions is none: %.80s", note);
	snprintf(line, sizeof line, "%.*s\n", (int)n, note);
	if (!add(&bill, line))
		return hd_fail(diag, HD_E_PROTOCOL, "a worker's bill of functions is none: %.80s", note);
	enum hd_err err = take_folder(fs, run, path, &n, diag);
	if (err)
		return err;
	snprintf(path + n, sizeof path - n, "/far-%s", from);
	return hd_file_write_atomic(fs, path, line, strlen(line), diag);
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
