#include "run/kept_plan.h"

#include <stdio.h>
#include <string.h>

#include "base/num.h"

enum { PLAN_FILE_BYTES = 256 << 20 };

static void path_of(char path[HD_PATH_CAP], const char *dir, uint32_t number, const char *end)
{
	snprintf(path, HD_PATH_CAP, "%s/" HD_PLAN_FOLDER "/%04u.plan%s", dir, number, end);
}

static enum hd_err write(struct hd_fs *fs, const char *path, const struct hd_text *text, struct hd_diag *diag)
{
	struct hd_file file = { 0 };
	enum hd_err err = hd_file_open(fs, path, HD_OPEN_WRITE | HD_OPEN_CREATE | HD_OPEN_TRUNCATE, &file,
		diag);

	if (err)
		return err;
	err = hd_file_write(&file, text->at, text->len, diag);
	enum hd_err closed = hd_file_close(&file, err ? NULL : diag);
	return err ? err : closed;
}

enum hd_err hd_plan_keep(const struct hd_plan *plan, struct hd_fs *fs, const char *dir, struct hd_diag *diag)
{
	char path[HD_PATH_CAP], temporary[HD_PATH_CAP];
	struct hd_arena arena;
	struct hd_text text;

	path_of(path, dir, plan->number, "");
	path_of(temporary, dir, plan->number, ".tmp");
	hd_arena_init(&arena, 0);
	hd_text_init(&text, &arena);
	enum hd_err err = hd_plan_print(plan, &text);
	err = err ? hd_fail(diag, err, "plan %u could not be printed: no memory", plan->number) : write(fs,
		temporary, &text, diag);
	hd_arena_finish(&arena);
	err = err ? err : hd_fs_rename(fs, temporary, path, diag);
	if (err)
		(void)!hd_fs_unlink(fs, temporary, NULL);
	return err;
}

static bool number_of(const char *name, const char *ends, uint32_t *number)
{
	const char *end = strchr(name, '.');
	char digits[16];
	uint64_t n = 0;

	if (!end || strcmp(end, ends) != 0 || end == name || end - name >= (ptrdiff_t)sizeof digits)
		return false;
	snprintf(digits, sizeof digits, "%.*s", (int)(end - name), name);
	const char *first = digits + strspn(digits, "0");
	if (hd_num_u64(*first ? first : "0", UINT32_MAX - 1, &n, NULL))
		return false;
	*number = (uint32_t)n;
	return true;
}

enum hd_err hd_plan_newest_of(uint32_t *number, const char *end, struct hd_fs *fs, const char *dir,
	struct hd_diag *diag)
{
	char path[HD_PATH_CAP];
	struct hd_arena arena;
	uint32_t n = 0, found = 0;
	char **names = NULL;
	size_t nnames = 0;

	snprintf(path, sizeof path, "%s/" HD_PLAN_FOLDER, dir);
	hd_arena_init(&arena, 0);
	enum hd_err err = hd_fs_list(fs, path, &arena, &names, &nnames, diag);
	for (size_t i = 0; i < nnames && !err; i++) {
		uint32_t one;
		if (!number_of(names[i], end, &one))
			continue;
		found++;
		n = one > n ? one : n;
	}
	hd_arena_finish(&arena);
	if (!err && !found)
		err = hd_fail(diag, HD_E_NOTFOUND, "there is no plan in %s", path);
	if (!err)
		*number = n;
	return err;
}

enum hd_err hd_plan_newest(uint32_t *number, struct hd_fs *fs, const char *dir, struct hd_diag *diag)
{
	return hd_plan_newest_of(number, ".plan", fs, dir, diag);
}

static enum hd_err read(struct hd_plan *plan, uint32_t number, struct hd_fs *fs, const char *dir,
	struct hd_arena *arena, struct hd_diag *diag)
{
	char path[HD_PATH_CAP];
	uint8_t *bytes;
	size_t len;

	path_of(path, dir, number, "");
	enum hd_err err = hd_file_read_all(fs, path, arena, PLAN_FILE_BYTES, &bytes, &len, diag);
	return err ? err : hd_plan_parse(plan, (const char *)bytes, len, path, arena, diag);
}

enum hd_err hd_plan_read_newest(struct hd_plan *plan, struct hd_fs *fs, const char *dir,
	struct hd_arena *arena, struct hd_diag *diag)
{
	uint32_t number = 0;
	enum hd_err err = hd_plan_newest(&number, fs, dir, diag);

	return err ? err : read(plan, number, fs, dir, arena, diag);
}

/* One that cannot be read is another one. */
static bool is_same(const struct hd_plan *plan, uint32_t number, struct hd_fs *fs, const char *dir)
{
	struct hd_arena arena;
	struct hd_plan kept;

	hd_arena_init(&arena, 0);
	bool same = !read(&kept, number, fs, dir, &arena, NULL) &&
		hd_hash_same(hd_plan_digest(plan), hd_plan_digest(&kept));
	hd_arena_finish(&arena);
	return same;
}

enum hd_err hd_plan_number(uint32_t *number, const struct hd_plan *plan, struct hd_fs *fs, const char *dir,
	struct hd_diag *diag)
{
	struct hd_diag why = { "" };
	uint32_t newest = 0;
	enum hd_err err = hd_plan_newest(&newest, fs, dir, &why);

	if (!err)
		*number = is_same(plan, newest, fs, dir) ? newest : newest + 1;
	else if (err == HD_E_NOTFOUND)
		*number = 0;
	/* None yet is no failure: a word of it would be taken for the reason of whatever fails next. */
	return !err || err == HD_E_NOTFOUND ? HD_OK : hd_fail(diag, err, "%s", why.text);
}
