/* page.h -- the files of the scheduler's page, built into the program (src/daemon/page).
 *
 * 1. They hold nothing of the cluster: they are served without a token, the page asks for one.
 * 2. A file's tag is a hash of its bytes, so that a browser that has them is sent none.
 *
 * Pure. */
#ifndef HD_DAEMON_PAGE_H
#define HD_DAEMON_PAGE_H

#include <stddef.h>

/* What a page may do: its own files, its own origin, and no text that becomes markup or script. */
#define HD_PAGE_POLICY "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " \
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " \
	"require-trusted-types-for 'script'; trusted-types 'none'"

struct hd_page_file {
	/* "/page.js", NULL ends the list; media type; tag with its quotes */
	const char *path, *type, *tag;
	const char *bytes;
	size_t len;
};
extern const struct hd_page_file hd_page_files[];

const struct hd_page_file *hd_page_find(const char *path);        /* NULL: there is none */

#endif
