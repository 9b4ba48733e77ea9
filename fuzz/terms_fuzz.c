/* terms_fuzz -- texts of terms (scheduler/terms.h): what is read is written as it was, an array's indices
 * ascend within their bounds, and nothing else is read. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/terms.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void must(bool good)
{
	if (!good)
		abort();
}

static void read_tasks(const char *text)
{
	static struct hd_tasks tasks;

	if (hd_tasks_read(&tasks, text, NULL))
		return;
	must(tasks.n >= 1 && tasks.n <= HD_TERMS_TASKS && tasks.at_once <= HD_TERMS_TASKS);
	for (uint32_t i = 0; i < tasks.n; i++)
		must(tasks.index[i] <= HD_TERMS_INDEX && (!i || tasks.index[i] > tasks.index[i - 1]));
}

/* A number may be written with zeros before it, so what was read is compared with itself. */
static void read_after(const char *text)
{
	struct hd_job_terms terms = { 0 }, again = { 0 };
	char written[HD_TERMS_TEXT], twice[HD_TERMS_TEXT];

	if (hd_terms_get_after(&terms, text, NULL))
		return;
	hd_terms_put_after(&terms, written);
	must(!hd_terms_get_after(&again, written, NULL) && again.nafter == terms.nafter);
	hd_terms_put_after(&again, twice);
	must(!strcmp(written, twice));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	char text[600];

	if (len >= sizeof text)
		return 0;
	memcpy(text, bytes, len);
	text[len] = 0;
	read_tasks(text);
	read_after(text);
	return 0;
}
