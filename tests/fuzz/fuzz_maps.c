// SPDX-License-Identifier: MIT
/* Any bytes as a line of /proc/PID/maps: what is accepted must make sense. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "probe/maps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *line = malloc(size + 1); /* of just this size, for AddressSanitizer */
	struct mapping mapping;

	memcpy(line, data, size);
	line[size] = '\0';
	if (mapping_parse(line, &mapping) == 0 &&
	    (mapping.start > mapping.end || mapping.path < line ||
	     mapping.path + strlen(mapping.path) > line + size))
		abort();
	free(line);
	return 0;
}
