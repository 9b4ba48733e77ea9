#include "data/documents.h"

#include <stdlib.h>

#include "tests/data_disk.h"

/* All documents, batches parted by '/', as "text.line:bytes|"; or the message. */
static const char *documents_of(const char *const *texts, uint32_t n, bool lines, const char *field,
	size_t batch,
	size_t cap)
{
	static char out[4096];
	struct hd_documents d;
	struct hd_diag diag = { "" };
	size_t at = 0;
	enum hd_err err;

	hd_documents_init(&d, &sim.fs, texts, n, lines, field, batch, cap);
	out[0] = 0;
	while (!(err = hd_documents_next(&d, &diag)) && d.n) {
		for (uint32_t i = 0; i < d.n; i++)
			at += (size_t)snprintf(out + at, sizeof out - at, "%u.%u:%.*s%s|", d.at[i].text,
				(unsigned)d.at[i].line, (int)d.at[i].len, (const char *)d.bytes + d.at[i].at,
				d.at[i].is_text ? "!" : "");
		at += (size_t)snprintf(out + at, sizeof out - at, "/");
	}
	hd_documents_finish(&d);
	if (err)
		snprintf(out, sizeof out, "%d %s", (int)err, diag.text);
	return out;
}

static const char *const two[] = { "d/a", "d/b" };

static void a_document_is_a_text_or_a_line(void **state)
{
	(void)state;
	put_text(&sim.fs, "d/a", "one\n\ntwo\r\n\r\nthree");
	put_text(&sim.fs, "d/b", "four\n");
	CHECK(!strcmp(documents_of(two, 2, false, NULL, 1 << 20, 1 << 20),
		"0.0:one\n\ntwo\r\n\r\nthree|1.0:four\n|/"), "%s", documents_of(two, 2, false, NULL, 1 << 20,
		1 << 20));
	CHECK(!strcmp(documents_of(two, 2, true, NULL, 1 << 20, 1 << 20),
		"0.1:one|0.3:two\r|0.5:three|1.1:four|/"), "%s", documents_of(two, 2, true, NULL, 1 << 20,
		1 << 20));
	put_text(&sim.fs, "d/a", "");
	CHECK(!strcmp(documents_of(two, 2, false, NULL, 1 << 20, 1 << 20), "1.0:four\n|/"),
		"an empty text is none");
}

/* As many as fit, one at least; the same documents whatever the batch. */
static void a_batch_has_as_many_as_fit(void **state)
{
	(void)state;
	put_text(&sim.fs, "d/a", "aaaa\nbb\ncccccccc\nd\n");
	CHECK(!strcmp(documents_of(two, 1, true, NULL, 5, 100), "0.1:aaaa|0.2:bb|/0.3:cccccccc|/0.4:d|/"),
		"%s",
		documents_of(two, 1, true, NULL, 5, 100));
	CHECK(!strncmp(documents_of(two, 1, true, NULL, 4, 100), "0.1:aaaa|/0.2:bb|", 17), "%s",
		documents_of(two, 1, true, NULL, 4, 100));
	CHECK(!strcmp(documents_of(two, 1, true, NULL, 1, 100), "0.1:aaaa|/0.2:bb|/0.3:cccccccc|/0.4:d|/"),
		"%s",
		documents_of(two, 1, true, NULL, 1, 100));
}

/* Longer than what is read at once, so that a line reaches over three reads. */
static void a_line_may_be_longer_than_what_is_read_at_once(void **state)
{
	const size_t len = 2 * HD_DOCUMENTS_READ + 100;
	char *text = malloc(len + 4);
	struct hd_documents d;

	(void)state;
	assert_non_null(text);
	memset(text, 'x', len);
	memcpy(text + len, "\nyz\n", 4);
	put_file(&sim.fs, "d/a", text, len + 4);
	hd_documents_init(&d, &sim.fs, two, 1, true, NULL, 1 << 30, 1 << 30);
	assert_int_equal(hd_documents_next(&d, NULL), HD_OK);
	assert_true(d.n == 2 && d.at[0].len == len && d.at[1].len == 2 && d.bytes[d.at[1].at] == 'y');
	assert_memory_equal(d.bytes, text, len);
	hd_documents_finish(&d);
	text[HD_DOCUMENTS_READ] = '\n';              /* the first byte of the second read */
	put_file(&sim.fs, "d/a", text, len + 4);
	hd_documents_init(&d, &sim.fs, two, 1, true, NULL, 1 << 30, 1 << 30);
	assert_int_equal(hd_documents_next(&d, NULL), HD_OK);
	assert_true(d.n == 3 && d.at[0].len == HD_DOCUMENTS_READ && d.at[1].len == HD_DOCUMENTS_READ + 99);
	hd_documents_finish(&d);
	text[HD_DOCUMENTS_READ] = 'x';
	put_file(&sim.fs, "d/a", text, len + 4);
	CHECK(strstr(documents_of(two, 1, true, NULL, 1 << 20, HD_DOCUMENTS_READ - 1),
		"d/a: a document of more than"),
		"%s", documents_of(two, 1, true, NULL, 1 << 20, HD_DOCUMENTS_READ - 1));
	CHECK(strstr(documents_of(two, 1, false, NULL, 1 << 20, 100),
		"d/a: a document of more than 100 bytes"), "%s",
		documents_of(two, 1, false, NULL, 1 << 20, 100));
	free(text);
}

static void a_file_that_is_gone_is_named(void **state)
{
	(void)state;
	put_text(&sim.fs, "d/a", "one");
	CHECK(strstr(documents_of(two, 2, true, NULL, 1 << 20, 1 << 20), "d/b"), "%s",
		documents_of(two, 2, true, NULL, 1 << 20, 1 << 20));
}

static void load_fixture(const char *name, const char *to)
{
	static uint8_t bytes[1 << 14];
	const char *folder = getenv("SOURCE_DIR");
	char path[HD_PATH_CAP];
	struct hd_file file;
	struct hd_fs fs;
	size_t len;

	hd_fs_real(&fs);
	snprintf(path, sizeof path, "%s/tests/data/rows/%s.parquet", folder ? folder : ".", name);
	assert_int_equal(hd_file_open(&fs, path, HD_OPEN_READ, &file, NULL), HD_OK);
	assert_int_equal(hd_file_read(&file, bytes, sizeof bytes, &len, NULL), HD_OK);
	assert_int_equal(hd_file_close(&file, NULL), HD_OK);
	put_file(&sim.fs, to, bytes, len);
}

/* Its second row is the empty text, which is no document. */
static void rows_of_parquet_are_documents(void **state)
{
	(void)state;
	load_fixture("delta", "d/a");
	put_text(&sim.fs, "d/b", "{\"t\": \"x\"}\n");
	CHECK(!strcmp(documents_of(two, 2, false, "t", 1 << 20, 1 << 20),
		"0.1:one!|0.3:drei\xc3\xa9!|1.1:{\"t\": \"x\"}|/"),
		"%s", documents_of(two, 2, false, "t", 1 << 20, 1 << 20));
	CHECK(strstr(documents_of(two, 2, false, "n", 1 << 20, 1 << 20),
		"d/a row 1: \"n\" holds numbers, not a text"),
		"%s", documents_of(two, 2, false, "n", 1 << 20, 1 << 20));
	CHECK(strstr(documents_of(two, 2, false, "hole", 1 << 20, 1 << 20),
		"d/a row 1: \"hole\" holds numbers"), "%s",
		documents_of(two, 2, false, "hole", 1 << 20, 1 << 20));
	CHECK(strstr(documents_of(two, 2, false, "q", 1 << 20, 1 << 20), "d/a: there is no column \"q\""),
		"%s",
		documents_of(two, 2, false, "q", 1 << 20, 1 << 20));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_DISK(a_document_is_a_text_or_a_line),
		ON_DISK(a_batch_has_as_many_as_fit),
		ON_DISK(a_line_may_be_longer_than_what_is_read_at_once),
		ON_DISK(a_file_that_is_gone_is_named),
		ON_DISK(rows_of_parquet_are_documents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
