#include "daemon/page.h"

#include <string.h>

#include "hd_page_files.h"

const struct hd_page_file hd_page_files[] = {
#define X(path, type, tag, bytes) { path, type, tag, bytes, sizeof(bytes) - 1 },
	HD_PAGE_FILES(X)
#undef X
	/* says that the loop turns: what probes ask for */
	{ "/healthz", "text/plain; charset=utf-8", "\"healthz\"", "ok\n", 3 },
	{ 0 },
};

const struct hd_page_file *hd_page_find(const char *path)
{
	for (const struct hd_page_file *f = hd_page_files; f->path; f++)
		if (!strcmp(f->path, path))
			return f;
	return NULL;
}
