/* SPDX-License-Identifier: MIT */
/*
 * Programs on functions of NVIDIA's kernel modules: of nvidia.ko and of nvidia-uvm.ko, each loaded
 * when its module is there. Of a module only its interface layer can be hooked, which the kernel's
 * own build has compiled; the rest has no place for that, and is not tried.
 *
 *   driver_functions_open -> driver_functions_read ... -> driver_functions_free
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "bpf/wire_driver.h"

enum driver_module { DRIVER_RM, DRIVER_UVM, DRIVER_MODULES };

/* As the kernel calls it: "nvidia", "nvidia_uvm". */
const char *driver_module_name(enum driver_module module);
bool driver_module_loaded(enum driver_module module);

/* How a function is hooked, or that it is not. */
enum driver_way {
	WAY_NONE,  /* `why` says it */
	WAY_TYPES, /* fentry, fexit */
	WAY_KPROBE,
	WAY_TRACEPOINT,
};

struct driver_hook {
	const char *function; /* as this driver calls it */
	const char *gives;    /* what is known by it: "Xids" */
	enum driver_way way;
	char why[128];
};

struct driver_functions_options {
	int targets, cgroups; /* maps of the programs; -1: all processes are targets */
	bool all, cgroup;
	bool no_types; /* kprobes also where there are types */
};

struct driver_functions;

/*
 * What cannot be hooked is no failure: driver_functions_each() tells of it. A failure is that the
 * programs cannot be loaded at all, or that the driver is not known.
 */
int driver_functions_open(enum driver_module module, const struct driver_functions_options *options,
                          struct driver_functions **hooks, struct err *err);
void driver_functions_free(struct driver_functions *hooks);

void driver_functions_each(const struct driver_functions *hooks,
                           void (*each)(void *data, const struct driver_hook *hook), void *data);

/* Single events since the last time. */
void driver_functions_read(struct driver_functions *hooks,
                           void (*each)(void *data, const struct wire_driver_event *event),
                           void *data);

/*
 * Sums since the last time but one: programs may still be writing to the last. `last`: to all of
 * them, since none is attached any more.
 */
void driver_functions_sums(struct driver_functions *hooks, bool last,
                           void (*each)(void *data, const struct driver_key *key,
                                        const struct driver_sum *sum),
                           void *data);

void driver_functions_detach(struct driver_functions *hooks);

/* Whether programs tell of Xids: the kernel's log has only texts then. */
bool driver_functions_xids(const struct driver_functions *hooks);

const struct driver_state *driver_functions_state(const struct driver_functions *hooks);
