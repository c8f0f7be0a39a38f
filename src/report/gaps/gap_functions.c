// SPDX-License-Identifier: MIT
#include "report/gaps/gap_functions.h"

#include <stdlib.h>

#include "analysis/by_id.h"

void gap_functions_free(struct gap_functions *functions)
{
	free(functions->all);
}

void gap_functions_add(struct gap_functions *functions, const struct function *function,
                       uint64_t ns)
{
	functions->all =
		by_id_room(functions->all, &functions->n, sizeof(*functions->all), function->id);
	functions->all[function->id].function = function;
	functions->all[function->id].ns += ns;
}

void gap_functions_take(struct gap_functions *functions, const struct function *function,
                        uint64_t ns)
{
	functions->all[function->id].ns -= ns;
}

struct gap_function gap_functions_most(const struct gap_functions *functions)
{
	struct gap_function most = { 0 };

	for (size_t i = 0; i < functions->n; i++) {
		if (functions->all[i].ns > most.ns)
			most = functions->all[i];
	}
	return most;
}
