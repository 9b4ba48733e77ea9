#include <stdio.h>
#include <string.h>

#include "daemon/daemon_int.h"

/* What a job's workers were paid for: the ledger of its run (spot/meter.h). Its coordinator says it with each
 * answer; at the end it lies in the run's folder, as the newest event "paid". It counts from the begin of the
 * run, whatever leases there were, so of the two the larger is the newer. */

enum { TAIL = 64 << 10 };

void daemon_paid_heard(struct hd_paid *paid, const struct hd_json *answer)
{
	struct hd_paid is;

	if (hd_paid_read(&is, answer, "paid_ms", "paid_nano_usd") && is.ms >= paid->ms)
		*paid = is;
}

static void take_line(struct hd_paid *paid, const char *line, size_t len)
{
	const struct hd_json *json;
	const char *kind;
	struct hd_arena arena;

	hd_arena_init(&arena, 0);
	if (!hd_json_parse(&arena, "event", line, len, &json, NULL) &&
		!hd_json_get_text(json, "kind", &kind, NULL) && !strcmp(kind, "paid"))
		(void)hd_paid_read(paid, json, "ms", "nano_usd");
	hd_arena_finish(&arena);
}

/* The newest in the last part of the file; a line that is cut there is none. */
void daemon_paid_read(struct hd_paid *paid, struct hd_fs *fs, const char *run)
{
	char path[HD_PATH_CAP];
	struct hd_file file = { 0 };
	struct hd_stat stat;
	struct hd_arena arena;
	struct hd_paid is = { 0 };
	size_t len = 0, begin = 0;

	(void)snprintf(path, sizeof path, "%s/events.ndjson", run);
	if (hd_fs_stat(fs, path, &stat, NULL) || hd_file_open(fs, path, HD_OPEN_READ, &file, NULL))
		return;
	const int64_t from = stat.size_bytes > TAIL ? stat.size_bytes - TAIL : 0;
	hd_arena_init(&arena, 0);
	char *text = hd_arena_take(&arena, TAIL, 1);
	if (text && hd_file_pread(&file, text, TAIL, from, &len, NULL))
		len = 0;
	for (size_t i = 0; text && i < len; i++)
		if (text[i] == '\n') {
			if (begin || !from)
				take_line(&is, text + begin, i - begin);
			begin = i + 1;
		}
	if (is.ms > paid->ms)
		*paid = is;
	hd_arena_finish(&arena);
	(void)!hd_file_close(&file, NULL);
}
