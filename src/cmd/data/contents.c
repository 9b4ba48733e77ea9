#include "cmd/data/contents.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- lines ---- */

/* Bytes of a name that any terminal takes. */
static void print_plain(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		(void)putchar(text[i] >= ' ' && text[i] <= '~' ? text[i] : '?');
}

static enum hd_err member_text(const struct hd_tar_member *m, size_t key)
{
	printf("%12" PRIu64 " bytes at %-12" PRIu64 " ", m->len, m->offset);
	print_plain(m->name, key);
	printf("  ");
	print_plain(m->name + key, strlen(m->name + key));
	printf("\n");
	return HD_OK;
}

static enum hd_err member_json(const struct hd_tar_member *m, size_t key)
{
	struct hd_json_writer w;
	struct hd_arena arena;
	struct hd_text text;

	hd_arena_init(&arena, 0);
	hd_text_init(&text, &arena);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	hd_json_put_bytes(&w, "key", m->name, key);
	hd_json_put_text(&w, "member", m->name);
	hd_json_put_i64(&w, "offset", (int64_t)m->offset);
	hd_json_put_i64(&w, "bytes", (int64_t)m->len);
	hd_json_close(&w);
	printf("%s\n", text.at);
	hd_arena_finish(&arena);
	return HD_OK;
}

/* Counts one; whether it is to be printed. */
static bool is_listed(struct hd_contents *c)
{
	c->n++;
	if (c->listed == c->limit)
		return false;
	c->listed++;
	return true;
}

static enum hd_err on_member(void *user, const struct hd_tar_member *member, struct hd_diag *diag)
{
	struct hd_contents *c = user;
	const size_t key = hd_tar_key(member->name);

	(void)diag;
	if (!is_listed(c))
		return HD_OK;
	return c->json ? member_json(member, key) : member_text(member, key);
}

static enum hd_err pass_bytes(void *user, const uint8_t *bytes, size_t len, struct hd_diag *diag)
{
	(void)user;
	(void)bytes;
	(void)len;
	(void)diag;
	return HD_OK;
}

static enum hd_err pass_end(void *user, struct hd_diag *diag)
{
	(void)user;
	(void)diag;
	return HD_OK;
}

static enum hd_err on_record(void *user, const struct hd_record *record, struct hd_diag *diag)
{
	struct hd_contents *c = user;

	(void)diag;
	if (record->damaged && !c->damaged++)
		c->damaged_at = record->offset;
	if (!is_listed(c))
		return HD_OK;
	printf(c->json ? "{\"record\":%" PRIu64 ",\"offset\":%" PRIu64 ",\"bytes\":%" PRIu64
		",\"crc_ok\":%s}\n" :
		"record %-8" PRIu64 " at %-12" PRIu64 " %12" PRIu64 " bytes, crc ok: %s\n", c->n - 1,
		record->offset, record->len, record->damaged ? "false" : "true");
	return HD_OK;
}

/* ---- the file ---- */

void hd_contents_begin(struct hd_contents *c, const char *name, uint64_t limit, bool json,
	const uint8_t *bytes, size_t len)
{
	memset(c, 0, sizeof *c);
	c->name = name;
	c->limit = limit;
	c->json = json;
	if (len >= HD_TAR_BLOCK && hd_tar_begins(bytes))
		c->form = HD_CONTENTS_TAR;
	else if (len >= HD_RECORD_HEAD + HD_RECORD_TAIL && hd_record_begins(bytes))
		c->form = HD_CONTENTS_RECORDS;
	hd_tar_init(&c->tar);
	hd_records_init(&c->records);
	c->records.lists = true;
}

void hd_contents_feed(struct hd_contents *c, const uint8_t *bytes, size_t len)
{
	const struct hd_tar_sink sink = { c, on_member, pass_bytes, pass_end };

	if (c->err)
		return;
	if (c->form == HD_CONTENTS_TAR)
		c->err = hd_tar_feed(&c->tar, bytes, len, c->name, &sink, &c->why);
	else if (c->form == HD_CONTENTS_RECORDS)
		c->err = hd_records_feed(&c->records, bytes, len, c->name, on_record, c, &c->why);
}

void hd_contents_put(const struct hd_contents *c, struct hd_json_writer *w)
{
	if (c->form == HD_CONTENTS_NONE)
		return;
	hd_json_put_text(w, "form", c->form == HD_CONTENTS_TAR ? "tar" : "records");
	hd_json_put_i64(w, c->form == HD_CONTENTS_TAR ? "members" : "records", (int64_t)c->n);
	hd_json_put_i64(w, "listed", (int64_t)c->listed);
	if (c->form == HD_CONTENTS_RECORDS)
		hd_json_put_i64(w, "damaged", (int64_t)c->damaged);
}

enum hd_err hd_contents_end(struct hd_contents *c, struct hd_diag *diag)
{
	if (!c->err && c->form == HD_CONTENTS_TAR)
		c->err = hd_tar_finish(&c->tar, c->name, &c->why);
	if (!c->err && c->form == HD_CONTENTS_RECORDS)
		c->err = hd_records_finish(&c->records, c->name, &c->why);
	if (c->err)
		return hd_fail(diag, c->err, "%s", c->why.text);
	return !c->damaged ? HD_OK : hd_fail(diag, HD_E_INPUT, "%s: %" PRIu64 " of %" PRIu64
		" records are damaged, the first at byte %" PRIu64 ": fetch or write the file again", c->name,
		c->damaged, c->n, c->damaged_at);
}
