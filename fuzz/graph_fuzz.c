/* Graph text: whatever is accepted prints to a text that is accepted and prints the same;
 * passes and autodiff on it end with a verified graph or a message. */
#include <stdlib.h>
#include <string.h>

#include "graph/testing.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

enum { BUDGET_BYTES = 64 << 20, ROWS = 1 << 20 };

static const char *print(struct hd_subject *s)
{
	const char *text = hd_subject_print(s);

	if (s->err != HD_OK && s->err != HD_E_NOMEM && s->err != HD_E_NOSPACE)
		abort();
	return s->err == HD_OK ? text : NULL;
}

static void reparse(struct hd_subject *s)
{
	struct hd_subject again;
	const char *text = print(s);

	if (!text)
		return;
	hd_subject_init(&again);
	again.arena.budget_bytes = BUDGET_BYTES;
	again.err = hd_graph_parse(&again.graph, "again", text, strlen(text), &again.diag);
	if (again.err == HD_OK) {
		const char *same = print(&again);
		if (same && strcmp(same, text) != 0)
			abort();
	} else if (again.err != HD_E_NOMEM) {
		abort();
	}
	hd_subject_finish(&again);
}

static void transform(struct hd_subject *s)
{
	enum hd_err err = hd_graph_optimize(&s->graph, ROWS, &s->diag);

	if (err == HD_E_BUG)
		abort();
	if (err == HD_OK && hd_graph_autodiff(&s->graph, &s->diag) == HD_OK &&
		hd_graph_verify(&s->graph, ROWS, &s->diag) != HD_OK &&
	    !strstr(s->diag.text, "too large"))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct hd_subject s;

	hd_subject_init(&s);
	s.arena.budget_bytes = BUDGET_BYTES;
	s.err = hd_graph_parse(&s.graph, "fuzz", (const char *)bytes, len, &s.diag);
	if ((s.err == HD_OK) == (s.diag.text[0] != '\0'))
		abort();
	if (s.err == HD_OK) {
		reparse(&s);
		transform(&s);
	}
	hd_subject_finish(&s);
	return 0;
}
