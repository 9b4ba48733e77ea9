#include "run/tensorboard.h"

#include <stdio.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/le.h"
#include "base/protobuf.h"
#include "sys/process.h"
#include "run/rundir.h"

/* Numbers of fields, by message. */
enum { EVENT_WALL_TIME = 1, EVENT_STEP = 2, EVENT_VERSION = 3, EVENT_SUMMARY = 5, EVENT_SESSION = 7 };
enum { SESSION_STATUS = 1, SESSION_START = 1, SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_SIMPLE = 2 };
enum { MESSAGE_CAP = 2048, AROUND = 16, TAG_CAP = 128 };

static uint32_t masked(const void *bytes, size_t len)
{
	uint32_t crc = hd_crc32c(0, bytes, len);

	return (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8);
}

static uint64_t bits_of(double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof bits);
	return bits;
}

struct board_message { uint8_t at[MESSAGE_CAP]; struct hd_pb pb; size_t summary; };

static void begin(struct hd_tensorboard *tb, struct board_message *m, uint64_t step)
{
	m->pb = (struct hd_pb){ .at = m->at, .cap = sizeof m->at };
	hd_pb_fixed64(&m->pb, EVENT_WALL_TIME, bits_of((double)hd_clock_wall_ns(tb->clock) * 1e-9));
	hd_pb_varint(&m->pb, EVENT_STEP, step);
}

/* One write, so that a record is torn by the end of the process at most. */
static void put(struct hd_tensorboard *tb, const struct board_message *m)
{
	uint8_t record[MESSAGE_CAP + AROUND];
	size_t len = m->pb.len;

	if (!tb->file.fs || m->pb.full)
		return;
	hd_put64(record, len);
	hd_put32(record + 8, masked(record, 8));
	memcpy(record + 12, m->at, len);
	hd_put32(record + 12 + len, masked(m->at, len));
	tb->torn = tb->torn && hd_file_truncate(&tb->file, tb->end_bytes, NULL);
	if (!tb->torn && !hd_file_write(&tb->file, record, len + AROUND, NULL)) {
		tb->end_bytes += (int64_t)(len + AROUND);
		tb->failing = false;
		return;
	}
	tb->torn = hd_file_truncate(&tb->file, tb->end_bytes, NULL) != HD_OK;
	tb->failing = true;
	tb->lost++;
}

static void scalar(struct board_message *m, const char *tag, double v)
{
	float narrow = (float)v;
	uint32_t bits;

	memcpy(&bits, &narrow, sizeof bits);
	size_t value = hd_pb_begin(&m->pb, SUMMARY_VALUE);
	hd_pb_text(&m->pb, VALUE_TAG, tag);
	hd_pb_fixed32(&m->pb, VALUE_SIMPLE, bits);
	hd_pb_end(&m->pb, value);
}

enum hd_err hd_tensorboard_open(struct hd_tensorboard *tb, struct hd_fs *fs, struct hd_clock *clock,
	const char *folder, uint64_t step, struct hd_diag *diag)
{
	struct hd_proc_self self;
	struct board_message m;
	struct hd_stat stat;

	hd_proc_self(&self);
	*tb = (struct hd_tensorboard){ .clock = clock };
	snprintf(tb->path, sizeof tb->path, "%s/events.out.tfevents.%lld.%u", folder,
		(long long)(hd_clock_wall_ns(clock) / 1000000000), self.pid);
	enum hd_err err = hd_file_open(fs, tb->path, HD_OPEN_WRITE | HD_OPEN_CREATE | HD_OPEN_APPEND,
		&tb->file, diag);
	if (!err && (err = hd_fs_stat(fs, tb->path, &stat, diag)))
		(void)!hd_file_close(&tb->file, NULL);
	if (err)
		return err;
	tb->end_bytes = stat.size_bytes;
	begin(tb, &m, 0);
	hd_pb_text(&m.pb, EVENT_VERSION, "brain.Event:2");
	put(tb, &m);
	begin(tb, &m, step);
	size_t session = hd_pb_begin(&m.pb, EVENT_SESSION);
	hd_pb_varint(&m.pb, SESSION_STATUS, SESSION_START);
	hd_pb_end(&m.pb, session);
	put(tb, &m);
	return HD_OK;
}

void hd_tensorboard_step(struct hd_tensorboard *tb, const struct hd_step_record *r,
	const struct hd_step_times *times)
{
	struct board_message m;

	if (!tb->file.fs)
		return;
	begin(tb, &m, r->step);
	size_t summary = hd_pb_begin(&m.pb, EVENT_SUMMARY);
	scalar(&m, "loss", r->weight > 0 ? r->loss_sum / r->weight : 0);
	char tag[] = "loss_1";
	for (uint32_t i = 0; i < r->nterms; i++, tag[5]++)
		scalar(&m, tag, r->weight > 0 ? r->term_sum[i] / r->weight : 0);
	scalar(&m, "lr", (double)r->lr);
	scalar(&m, "gnorm", r->gnorm);
	scalar(&m, "samples", (double)r->samples);
	scalar(&m, "step_ms", times->step_ms);
	scalar(&m, "workers", times->workers);
	hd_pb_end(&m.pb, summary);
	put(tb, &m);
}

void hd_tensorboard_eval(struct hd_tensorboard *tb, uint64_t step, const struct hd_json *eval)
{
	const char *split = "";
	char tag[TAG_CAP];
	struct board_message m;
	double value;

	if (!tb->file.fs || hd_json_get_text(eval, "split", &split, NULL))
		return;
	begin(tb, &m, step);
	size_t summary = hd_pb_begin(&m.pb, EVENT_SUMMARY);
	for (size_t i = 0; i < hd_json_count(eval); i++) {
		const char *key = hd_json_key(eval, i);
		if (!strcmp(key, "rows") || hd_json_as_f64(hd_json_item(eval, i), &value, NULL))
			continue;
		snprintf(tag, sizeof tag, "eval_%.60s/%.60s", split, key);
		scalar(&m, tag, value);
	}
	hd_pb_end(&m.pb, summary);
	put(tb, &m);
}

void hd_tensorboard_close(struct hd_tensorboard *tb) { (void)!hd_file_close(&tb->file, NULL); }
