// SPDX-License-Identifier: MIT
/* Which number CUPTI gives a function. */
#include <stdlib.h>
#include <string.h>

#include "cupti.h"
#include "sites.h"

struct site {
	int number;
	const char *name;     /* as it is exported, and in a callback's data */
	const char *released; /* as cuptiGetCallbackName tells */
};

#define DRIVER_SITE(number, name)           { number, #name, #name },
#define RUNTIME_SITE(number, name, release) { number, #name, #name "_v" #release },

/* By number. */
static const struct site driver_sites[] = { DRIVER_SITES(DRIVER_SITE) };
static const struct site runtime_sites[] = { RUNTIME_SITES(RUNTIME_SITE) };

#define COUNT(sites) (sizeof(sites) / sizeof((sites)[0]))

static const struct site *sites_of(enum sim_layer layer, size_t *n)
{
	*n = layer == SIM_DRIVER ? COUNT(driver_sites) : COUNT(runtime_sites);
	return layer == SIM_DRIVER ? driver_sites : runtime_sites;
}

int site_number(enum sim_layer layer, const char *name)
{
	size_t n;
	const struct site *sites = sites_of(layer, &n);
	for (size_t i = 0; i < n; i++) {
		if (strcmp(sites[i].name, name) == 0)
			return sites[i].number;
	}
	return -1;
}

const char *site_name(enum sim_layer layer, uint32_t number)
{
	size_t n;
	const struct site *sites = sites_of(layer, &n);
	for (size_t i = 0; i < n; i++) {
		if ((uint32_t)sites[i].number == number)
			return sites[i].released;
	}
	return NULL;
}

/* Numbers that the release does not know are refused. */
uint32_t site_count(enum sim_layer layer)
{
	if (CUPTI_RELEASE >= 13000)
		return layer == SIM_DRIVER ? 807 : 523;
	if (CUPTI_RELEASE >= 12000)
		return layer == SIM_DRIVER ? 740 : 470;
	return layer == SIM_DRIVER ? 580 : 390;
}
