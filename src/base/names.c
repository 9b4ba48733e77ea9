#include "base/names.h"

#include <string.h>

bool hd_name_valid(const char *name)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	size_t len = strnlen(name, HD_NAME_MAX + 1);

	return len > 0 && len <= HD_NAME_MAX && name[0] != '.' && name[0] != '-' &&
		strspn(name, allowed) == len;
}
