#include "device/device.h"

#include <string.h>

#include "base/alloc.h"
#include "device/grid.h"

const struct hd_device_ops *const hd_devices[] = {
#define X(name) &hd_device_##name,
	HD_DEVICES(X)
#undef X
	NULL,
};

const char *hd_kernels_text(enum hd_kernels kernels)
{
	static const char *const text[] = { [HD_KERNELS_LIBRARY] = "library", [HD_KERNELS_PORTABLE] =
		"portable", [HD_KERNELS_BF16] = "bf16", [HD_KERNELS_BF16_AMX] = "bf16-amx" };
	return text[kernels];
}

static const struct hd_device_ops *find(const char *kind, struct hd_diag *diag)
{
	char names[128] = "";
	size_t used = 0;

	for (const struct hd_device_ops *const *ops = hd_devices; *ops; ops++) {
		size_t len = strlen((*ops)->name);
		if (strcmp((*ops)->name, kind) == 0)
			return *ops;
		if (used + len + 3 <= sizeof names) {
			memcpy(names + used, used ? ", " : "", used ? 2 : 0);
			used += used ? 2 : 0;
			memcpy(names + used, (*ops)->name, len + 1);
			used += len;
		}
	}
	(void)hd_fail(diag, HD_E_INVAL, "there is no device '%s': use one of %s", kind, names);
	return NULL;
}

enum hd_err hd_device_create(struct hd_device **device, const char *kind,
	const struct hd_device_spec *spec, struct hd_diag *diag)
{
	const struct hd_device_ops *ops = find(kind, diag);

	if (!ops)
		return HD_E_INVAL;
	struct hd_device *made = hd_alloc(ops->size);
	if (!made)
		return hd_fail(diag, HD_E_NOMEM, "device %s: out of memory", kind);
	memset(made, 0, ops->size);
	made->ops = ops;
	enum hd_err err = ops->open(made, spec, diag);
	if (err) {
		hd_free(made);
		return err;
	}
	*device = made;
	return HD_OK;
}

void hd_device_destroy(struct hd_device *device)
{
	if (!device)
		return;
	device->ops->close(device);
	hd_free(device);
}
