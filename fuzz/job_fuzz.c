/* A job that is accepted prints as JSON that is accepted again, with the same hash and the
 * same JSON; schema and messages never fail. Bytes before the first 0 byte are the file,
 * what follows is KEY=VALUE of a set. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "job/job.h"

enum { BUDGET = 32 << 20, MAX_SET = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* libfyaml 0.7.12 loses the buffer of a long quoted scalar when the text is refused behind it (see
 * yaml_fuzz.c). */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libfyaml"; }

/* The part behind the 0 byte as a set, if it has the form of one. */
static uint32_t take_set(const uint8_t *bytes, size_t len, char text[MAX_SET], struct hd_job_set *set)
{
	if (len == 0 || len >= MAX_SET)
		return 0;
	memcpy(text, bytes, len);
	text[len] = '\0';
	char *eq = strchr(text, '=');
	if (!eq)
		return 0;
	*eq = '\0';
	*set = (struct hd_job_set){ text, eq + 1, HD_FROM_SET };
	return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct hd_arena arena;
	struct hd_job job, again;
	struct hd_job_set set;
	struct hd_diag diag = { "" };
	struct hd_text warnings, once, twice;
	char text[MAX_SET];
	const uint8_t *end = len ? memchr(bytes, 0, len) : NULL;
	size_t file_len = end ? (size_t)(end - bytes) : len;
	uint32_t nsets = end ? take_set(end + 1, len - file_len - 1, text, &set) : 0;

	hd_arena_init(&arena, BUDGET);
	hd_text_init(&warnings, &arena);
	enum hd_err err = hd_job_parse(&job, "job.yaml", (const char *)bytes, file_len, &set, nsets, &arena,
		&diag, &warnings);
	if (err && !diag.text[0])
		abort();
	if (!err) {
		hd_text_init(&once, &arena);
		hd_text_init(&twice, &arena);
		hd_job_json(&job, false, &once);
		err = once.full ? HD_E_NOMEM : hd_job_parse(&again, "job.json", once.at, once.len, NULL, 0,
			&arena, NULL, NULL);
		if (err && err != HD_E_NOMEM)
			abort();
		if (!err)
			hd_job_json(&again, false, &twice);
		if (!err && !twice.full && (!hd_hash_same(job.hash, again.hash) ||
			strcmp(once.at, twice.at) != 0))
			abort();
	}
	hd_arena_finish(&arena);
	return 0;
}
