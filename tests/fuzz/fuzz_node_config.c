// SPDX-License-Identifier: MIT
/* The settings of the node agent from any text: a mistake is told, and leaves them as they were. */
#include <stdlib.h>
#include <string.h>

#include "node/config.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char *text = strndup((const char *)data, size);
	struct node_settings settings, before;
	struct err err = { 0 };

	config_begin(&settings);
	settings_copy(&before, &settings);
	if (config_read_text(&settings, "fuzz.ini", text, &err)) {
		if (!err.text[0] || settings.top != before.top ||
		    strcmp(settings.listen, before.listen))
			abort();
	} else if (settings.top > 500 || settings.label_env.n > CONFIG_LIST_MOST) {
		abort();
	}
	config_end(&before);
	config_end(&settings);
	free(text);
	return 0;
}
