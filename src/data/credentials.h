/* credentials.h -- whose right a request to AWS is: keys of the shared file, the region of an endpoint.
 *
 * The invoker's user looks at AWS's variables first, then at the file that ~/.aws/credentials is:
 *	[profile]
 *	aws_access_key_id = ...
 *	aws_secret_access_key = ...
 *	aws_session_token = ...                         perhaps
 *
 * 1. Other keys and profiles are passed over. A profile that is missing, or has no key or no secret, is
 *    HD_E_INPUT, and says which; what a key is stands in no message.
 *
 * Plain values. Pure. */
#ifndef HD_DATA_CREDENTIALS_H
#define HD_DATA_CREDENTIALS_H

#include <stddef.h>

#include "base/err.h"

enum { HD_AWS_KEY = 128, HD_AWS_TOKEN = 4096, HD_AWS_REGION = 64, HD_AWS_FILE_BYTES = 64 << 10 };

/* token "": none. */
struct hd_aws_credentials { char key_id[HD_AWS_KEY], secret[HD_AWS_KEY], token[HD_AWS_TOKEN]; };

/* `name` is the file's in messages. */
HD_MUST_USE enum hd_err hd_aws_credentials_read(const char *name, const char *text, size_t len,
	const char *profile, struct hd_aws_credentials *out, struct hd_diag *diag);
/* REGION of "https://lambda.REGION.amazonaws.com"; "": it is another endpoint. */
void hd_aws_region_of(const char *endpoint, char region[HD_AWS_REGION]);

#endif
