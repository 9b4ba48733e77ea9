#include "run/samples.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json_writer.h"

/* most of a line without samples; of a data epoch's beginning; of a number */
enum { LINE_BYTES = 100, EPOCH_BYTES = 26, NUMBER_BYTES = 21 };

enum hd_err hd_samples_open(struct hd_samples *s, struct hd_fs *fs, const char *dir, uint32_t worker,
	uint32_t nvns, uint64_t rows, struct hd_diag *diag)
{
	const size_t cap = (size_t)nvns * LINE_BYTES + rows * (NUMBER_BYTES + EPOCH_BYTES) + 1;
	char path[HD_PATH_CAP];

	*s = (struct hd_samples){ .room = hd_alloc(cap) };
	if (!s->room)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a record of %llu samples",
			(unsigned long long)rows);
	hd_text_fixed(&s->text, s->room, cap);
	if ((size_t)snprintf(path, sizeof path, "%s/" HD_SAMPLES_FOLDER, dir) + 32 > sizeof path)
		return hd_fail(diag, HD_E_INVAL, "the path of %s is too long", dir);
	enum hd_err err = hd_fs_mkdirs(fs, path, diag);
	snprintf(path, sizeof path, "%s/" HD_SAMPLES_FOLDER "/%u.ndjson", dir, worker);
	return err ? err : hd_lines_open(&s->lines, fs, path, diag);
}

void hd_samples_put(struct hd_samples *s, uint64_t step, uint32_t vn, const struct hd_sample *sample,
	uint64_t n)
{
	struct hd_json_writer w;

	hd_json_writer_init(&w, &s->text);
	hd_json_open_object(&w, NULL);
	hd_json_put_i64(&w, "step", (int64_t)step);
	hd_json_put_i64(&w, "vn", vn);
	hd_json_open_array(&w, "took");
	for (uint64_t i = 0; i < n;) {
		const uint64_t epoch = sample[i].epoch;
		hd_json_open_array(&w, NULL);
		hd_json_put_i64(&w, NULL, (int64_t)epoch);
		hd_json_open_array(&w, NULL);
		for (; i < n && sample[i].epoch == epoch; i++)
			hd_json_put_i64(&w, NULL, (int64_t)sample[i].index);
		hd_json_close(&w);
		hd_json_close(&w);
	}
	hd_json_close(&w);
	hd_json_close(&w);
	hd_text_add(&s->text, "\n");
}

enum hd_err hd_samples_write(struct hd_samples *s, struct hd_diag *diag)
{
	const size_t len = s->text.len;
	const bool full = s->text.full;

	s->text.len = 0;
	s->text.full = false;
	return full ? hd_fail(diag, HD_E_BUG, "the record of a step's samples is longer than it can be") :
		hd_lines_add(&s->lines, s->room, len, diag);
}

void hd_samples_close(struct hd_samples *s)
{
	(void)!hd_lines_close(&s->lines, NULL);
	hd_free(s->room);
	*s = (struct hd_samples){ 0 };
}
