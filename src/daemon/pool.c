#include "daemon/pool.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "base/num.h"

const char *hd_pool_means_text(enum hd_pool_means means)
{
	static const char *const text[] = {
#define X(id, text) text,
		HD_POOL_MEANS(X)
#undef X
	};

	return text[means];
}

enum hd_err hd_pools_add(struct hd_pools *p, const char *text, struct hd_diag *diag)
{
	struct hd_dispatch_type type = { .speed = 1 };
	char part[4][64] = { "", "", "", "" };
	const char *at = text;
	uint64_t n = 0;
	int parts = 0;

	for (; parts < 4; parts++) {
		size_t len = strcspn(at, ":");
		if (len >= sizeof part[0])
			break;
		memcpy(part[parts], at, len);
		at += len;
		if (*at++ != ':') {
			parts++;
			at--;
			break;
		}
	}
	bool good = parts >= 2 && !*at && hd_name_valid(part[0]) &&
		!hd_num_u64(part[1], HD_POOL_DEVICES, &n, NULL) && n;
	if (good && parts > 2)
		good = !hd_num_f64(part[2], 1e-3, 1e6, &type.speed, NULL);
	if (good && parts > 3)
		good = !hd_num_f64(part[3], 0, 1e6, &type.price_usd_h, NULL);
	if (!good)
		return hd_fail(diag, HD_E_INVAL,
			"pool \"%.80s\": write TYPE:N, TYPE:N:SPEED or TYPE:N:SPEED:PRICE, as fast:2:3:0.5 "
			"(two devices, three times "
			"as fast as speed 1, 0.5 dollars an hour each); N is 1 to %d", text, HD_POOL_DEVICES);
	for (uint32_t t = 0; t < p->ntypes; t++)
		if (!strcmp(p->name[t], part[0]))
			return hd_fail(diag, HD_E_INVAL, "pool \"%.80s\": there is a pool of type %s already",
				text, part[0]);
	if (p->ntypes == HD_DISPATCH_TYPES || p->ndevices + n > HD_POOL_DEVICES)
		return hd_fail(diag, HD_E_INVAL, "pool \"%.80s\": at most %d types and %d devices in all",
			text, HD_DISPATCH_TYPES, HD_POOL_DEVICES);
	type.n = (uint32_t)n;
	uint32_t t = p->ntypes++;
	for (; t && strcmp(p->name[t - 1], part[0]) > 0; t--) {
		memcpy(p->name[t], p->name[t - 1], sizeof p->name[t]);
		p->type[t] = p->type[t - 1];
	}
	memcpy(p->name[t], part[0], sizeof p->name[t]);
	p->type[t] = type;
	p->ndevices += type.n;
	return HD_OK;
}

/* ---- control groups ---- */

static enum hd_err put(const struct hd_pools *p, const char *folder, const char *file, const char *text)
{
	char path[HD_PATH_CAP];
	struct hd_file to;

	if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, file) >= sizeof path)
		return HD_E_INVAL;
	enum hd_err err = hd_file_open(p->fs, path, HD_OPEN_WRITE, &to, NULL);
	if (err)
		return err;
	err = hd_file_write(&to, text, strlen(text), NULL);
	enum hd_err closed = hd_file_close(&to, NULL);
	return err ? err : closed;
}

static enum hd_err folder(const struct hd_pools *p, const char *path)
{
	enum hd_err err = hd_fs_mkdir(p->fs, path, NULL);

	return err == HD_E_EXISTS ? HD_OK : err;
}

static void group_of(const struct hd_pools *p, uint32_t device, char path[HD_PATH_CAP])
{
	char name[96];

	hd_pools_device(p, device, name);
	snprintf(path, HD_PATH_CAP, "%s/%s", p->group, name);
}

static enum hd_err set_quota(const struct hd_pools *p, uint32_t device)
{
	long part = lround(HD_POOL_PERIOD_US * p->type[hd_pools_type(p, device)].speed / p->whole);
	char path[HD_PATH_CAP], text[64];

	group_of(p, device, path);
	part = part > 1000 ? part : 1000;         /* what the kernel takes */
	enum hd_err err = folder(p, path);
	if (!err && p->means == HD_POOL_CGROUP2) {
		snprintf(text, sizeof text, "%ld %d", part, HD_POOL_PERIOD_US);
		return put(p, path, "cpu.max", text);
	}
	snprintf(text, sizeof text, "%d", HD_POOL_PERIOD_US);
	if (!err)
		err = put(p, path, "cpu.cfs_period_us", text);
	snprintf(text, sizeof text, "%ld", part);
	return err ? err : put(p, path, "cpu.cfs_quota_us", text);
}

static void remove_groups(const struct hd_pools *p)
{
	char path[HD_PATH_CAP];

	for (uint32_t v = 0; v < p->ndevices; v++) {
		group_of(p, v, path);
		(void)!hd_fs_rmdir(p->fs, path, NULL);        /* one with a worker in it stays */
	}
	(void)!hd_fs_rmdir(p->fs, p->group, NULL);
}

static bool try_groups(struct hd_pools *p, enum hd_pool_means means, const char *root, const char *tag)
{
	enum hd_err err;

	p->means = means;
	snprintf(p->group, sizeof p->group, "%s/heddle-%.60s", root, tag);
	err = folder(p, p->group);
	if (!err && means == HD_POOL_CGROUP2)
		err = put(p, p->group, "cgroup.subtree_control", "+cpu");
	for (uint32_t v = 0; v < p->ndevices && !err; v++)
		err = set_quota(p, v);
	if (err)
		remove_groups(p);
	return !err;
}

enum hd_err hd_pools_open(struct hd_pools *p, struct hd_fs *fs, struct hd_diag *diag)
{
	p->fs = fs;
	p->whole = 1;
	p->means = HD_POOL_EQUAL;
	if (!p->ntypes)
		return hd_fail(diag, HD_E_INVAL,
			"--pool TYPE:N says which devices there are to hand out, as --pool core:2");
	for (uint32_t t = 0; t < p->ntypes; t++) {
		p->type[t].name = p->name[t];
		p->first_device[t + 1] = p->first_device[t] + p->type[t].n;
		p->whole = fmax(p->whole, p->type[t].speed);
	}
	return HD_OK;
}

void hd_pools_begin(struct hd_pools *p, const char *tag)
{
	bool whole = true;

	for (uint32_t t = 0; t < p->ntypes; t++)
		whole &= p->type[t].speed == p->whole;
	if (!whole && !try_groups(p, HD_POOL_CGROUP2, "/sys/fs/cgroup", tag) &&
		!try_groups(p, HD_POOL_CGROUP1, "/sys/fs/cgroup/cpu", tag))
		p->means = HD_POOL_SLOW;
}

void hd_pools_close(struct hd_pools *p)
{
	if (p->fs && (p->means == HD_POOL_CGROUP1 || p->means == HD_POOL_CGROUP2))
		remove_groups(p);
}

uint32_t hd_pools_type(const struct hd_pools *p, uint32_t device)
{
	uint32_t t = 0;

	while (device >= p->first_device[t + 1])
		t++;
	return t;
}

void hd_pools_device(const struct hd_pools *p, uint32_t device, char name[96])
{
	uint32_t t = hd_pools_type(p, device);

	snprintf(name, 96, "%s-%u", p->name[t], device - p->first_device[t]);
}

double hd_pools_slow(const struct hd_pools *p, uint32_t device)
{
	return p->means == HD_POOL_SLOW ? p->whole / p->type[hd_pools_type(p, device)].speed : 1;
}

enum hd_err hd_pools_limit(const struct hd_pools *p, uint32_t device, int pid, struct hd_diag *diag)
{
	char path[HD_PATH_CAP], text[32];

	if (p->means != HD_POOL_CGROUP1 && p->means != HD_POOL_CGROUP2)
		return HD_OK;
	group_of(p, device, path);
	snprintf(text, sizeof text, "%d", pid);
	enum hd_err err = put(p, path, "cgroup.procs", text);
	if (err) {                                /* an empty group was removed meanwhile */
		(void)!folder(p, p->group);
		err = set_quota(p, device);
		if (!err)
			err = put(p, path, "cgroup.procs", text);
	}
	return err ? hd_fail(diag, err, "process %d cannot be put into the control group %s", pid, path) :
		HD_OK;
}
