// SPDX-License-Identifier: MIT
/* Host and Accept of the node agent's server: a host that is taken for loopback is one. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "node/address.h"
#include "node/metrics.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char *text = strndup((const char *)data, size);

	if (http_host_is_loopback(text) && strncmp(text, "127.", 4) &&
	    strncasecmp(text, "localhost", 9) && strncmp(text, "[", 1))
		abort();
	if (metrics_accepted(text) == METRICS_OPENMETRICS &&
	    !strcasestr(text, "application/openmetrics-text"))
		abort();
	free(text);
	return 0;
}
