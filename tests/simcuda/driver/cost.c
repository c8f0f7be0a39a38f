// SPDX-License-Identifier: MIT
#include "cost.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"

struct cost {
	char function[64];
	double us;
};

static struct cost costs[16];
static size_t n_costs;
bool costs_wanted;

/* One "function=us". */
static bool cost_parse(const char *text, size_t len, struct cost *cost)
{
	const char *equals = memchr(text, '=', len);
	if (!equals || equals == text || (size_t)(equals - text) >= sizeof(cost->function))
		return false;
	memcpy(cost->function, text, (size_t)(equals - text));
	cost->us = strtod(equals + 1, NULL);
	return cost->us > 0;
}

void costs_read(void)
{
	const char *text = getenv("SIMCUDA_CALL_US");
	while (text && *text && n_costs < sizeof(costs) / sizeof(costs[0])) {
		size_t len = strcspn(text, ",");
		if (cost_parse(text, len, &costs[n_costs]))
			n_costs++;
		text += len;
		text += *text == ',';
	}
	costs_wanted = n_costs > 0;
}

void cost_pay(const char *function)
{
	for (size_t i = 0; i < n_costs; i++) {
		if (strcmp(costs[i].function, function) != 0)
			continue;
		uint64_t end = clock_now_ns() + (uint64_t)(costs[i].us * 1000);
		while (clock_now_ns() < end)
			;
	}
}
