// SPDX-License-Identifier: MIT
/* Subscribing, and callbacks around calls. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cupti.h"

#define DOMAINS   7 /* 1 to 6 */
#define SITES_MAX 1024

/* One object a subscription, never given anew: an old handle can be told from the present one. */
struct subscriber {
	callback call;
	void *user;
	bool v2;
};

static struct subscriber *_Atomic subscriber; /* NULL: none */
static atomic_bool enabled[DOMAINS][SITES_MAX];
static atomic_uint last_correlation;
static atomic_bool counting;
static atomic_uint threads; /* that made a call in this session */
static atomic_int inside;   /* threads that are in a call of the driver's, with its locks */

static __thread struct {
	uint64_t session;
	unsigned int depth;  /* of calls that were told */
	unsigned int locked; /* of those of the driver's that do not wait for the GPU */
	uint32_t correlation;
	bool at_exit;
} me;

/* ---- what the driver and the runtime tell ------------------------------------------------- */

/* Never 0, which means none. */
static uint32_t next_correlation(void)
{
	if (!atomic_exchange(&counting, true) && settings.first_correlation)
		atomic_store(&last_correlation, settings.first_correlation - 1);
	uint32_t id;
	do
		id = atomic_fetch_add(&last_correlation, 1) + 1;
	while (id == 0);
	return id;
}

uint32_t correlation_current(void)
{
	return me.session == session_now() && me.depth ? me.correlation : 0;
}

unsigned int callback_threads(void)
{
	return atomic_load(&threads);
}

bool callback_is_at_exit(void)
{
	return client_is_running() && me.at_exit;
}

/* The work that stays until cuptiFinalize, whatever is enabled. */
static void pay(void)
{
	if (!settings.cost_ns)
		return;
	uint64_t end = clock_ns() + settings.cost_ns;
	while (clock_ns() < end)
		;
}

static int number_of(struct sim_site *site)
{
	int number = __atomic_load_n(&site->id, __ATOMIC_RELAXED);
	if (number == 0) {
		number = site_number(site->layer, site->name);
		__atomic_store_n(&site->id, number, __ATOMIC_RELAXED);
	}
	return number;
}

/* The kernel's name, for the driver's launches. */
static const char *symbol_of(const struct sim_call *call, int site)
{
	static const struct {
		int site, word; /* the argument that is the kernel */
	} launches[] = { { 307, 0 }, { 442, 0 }, { 477, 0 }, { 478, 0 }, { 652, 1 }, { 653, 1 } };
	if (call->site->layer != SIM_DRIVER)
		return NULL;
	for (size_t i = 0; i < sizeof(launches) / sizeof(launches[0]); i++) {
		if (launches[i].site == site)
			return session_profiler()->kernel_name(
				((void *const *)call->params)[launches[i].word]);
	}
	return NULL;
}

static void tell(struct sim_call *call, bool exit)
{
	enum sim_layer layer = call->site->layer;
	int site = number_of(call->site);
	if (site < 0 || !atomic_load(&enabled[layer][site]))
		return;
	client_enter();
	const struct subscriber *to = atomic_load(&subscriber);
	if (to && to->call && session_now() == call->session) {
		struct callback_data data = { .site = exit,
			                      .function = call->site->name,
			                      .params = call->params,
			                      .result = exit ? call->result : NULL,
			                      .data = &call->data,
			                      .symbol = symbol_of(call, site),
			                      .correlation = call->correlation };
		data.context = session_profiler()->context(&data.context_number);
		me.at_exit = exit;
		to->call(to->user, layer, (uint32_t)site, &data);
		me.at_exit = false;
	}
	client_leave();
}

/* The real driver calls CUPTI with a context's lock in its calls, but not while it waits for the
 * GPU, nor where it only answers what is known. */
static bool has_locks(const struct sim_call *call)
{
	const char *name = call->site->name;

	return call->site->layer == SIM_DRIVER && !strstr(name, "Synchronize") &&
	       strncmp(name, "cuCtxGet", 8) && strcmp(name, "cuStreamIsCapturing");
}

bool call_others_are_inside(void)
{
	return atomic_load(&inside) > (me.session == session_now() && me.locked ? 1 : 0);
}

/* Of a resource of which the program is told. */
static void tell_resource(uint32_t site, struct resource_data *data)
{
	if (!atomic_load(&enabled[DOMAIN_RESOURCE][site]))
		return;
	client_enter();
	const struct subscriber *to = atomic_load(&subscriber);
	if (to && to->call && session_now())
		to->call(to->user, DOMAIN_RESOURCE, site, data);
	client_leave();
}

/* The handle of a node is its number. */
/* All modules have the same. */
static void tell_module(uint32_t site, void *context)
{
	size_t bytes;
	struct module_data module = { .cubin = pcs_cubin(&bytes) };
	struct resource_data data = { .context = context, .descriptor = &module };
	module.bytes = bytes;
	tell_resource(site, &data);
}

static void tell_launched_module(const struct sim_call *call)
{
	uint32_t number;

	if (atomic_load(&enabled[DOMAIN_RESOURCE][RESOURCE_MODULE_PROFILED]) &&
	    symbol_of(call, number_of(call->site)))
		tell_module(RESOURCE_MODULE_PROFILED, session_profiler()->context(&number));
}

bool call_enter(struct sim_call *call)
{
	call->session = session_now();
	if (call->session == 0 || client_is_running())
		return false;
	if (me.session != call->session) {
		me.session = call->session;
		me.depth = me.locked = 0;
		atomic_fetch_add(&threads, 1);
	}
	pay();
	pcs_wait();
	if (me.depth++ == 0)
		me.correlation = next_correlation();
	call->correlation = me.correlation;
	if (calls_are_recorded(call->site->layer))
		call->begin_ns = clock_ns();
	tell(call, false);
	if (has_locks(call) && me.locked++ == 0)
		atomic_fetch_add(&inside, 1);
	tell_launched_module(call);
	return true;
}

/* The session may have ended since the call was entered, or another one begun. */
void call_leave(struct sim_call *call)
{
	if (call->session != session_now() || me.session != call->session || me.depth == 0)
		return;
	if (call->begin_ns && number_of(call->site) > 0)
		call_record(call, (uint32_t)number_of(call->site));
	if (has_locks(call) && me.locked && --me.locked == 0)
		atomic_fetch_sub(&inside, 1);
	tell(call, true);
	if (me.session == call->session && me.depth > 0)
		me.depth--;
}

static void tell_node(uint32_t site, uint64_t node, uint64_t original)
{
	struct graph_data graph = { .node = (void *)(uintptr_t)node,
		                    .original_node = (void *)(uintptr_t)original };
	struct resource_data data = { .descriptor = &graph };
	tell_resource(site, &data);
}

void context_ends(void *context)
{
	struct resource_data data = { .context = context };
	tell_resource(RESOURCE_CONTEXT_DESTROY_STARTING, &data);
	pcs_context_ends(context);
}

void module_loaded(void *context)
{
	tell_module(RESOURCE_MODULE_LOADED, context);
}

/* A copy is told of as one that was made, too. */
void node_made(uint64_t node, uint64_t original)
{
	if (client_is_running())
		return;
	tell_node(RESOURCE_GRAPHNODE_CREATED, node, 0);
	if (original)
		tell_node(RESOURCE_GRAPHNODE_CLONED, node, original);
}

#if CUPTI_RELEASE >= 11010
CUPTI_API enum result cuptiGetGraphNodeId(void *node, uint64_t *number);
enum result cuptiGetGraphNodeId(void *node, uint64_t *number)
{
	FAIL_ON_DEMAND();
	if (!node || !number)
		return RESULT_INVALID_PARAMETER;
	*number = (uint64_t)(uintptr_t)node;
	return RESULT_SUCCESS;
}
#endif

/* ---- the program's side ---------------------------------------------------------------------- */

static void enable(uint32_t on, uint32_t domain, uint32_t first, uint32_t last)
{
	for (uint32_t i = first; i <= last && i < SITES_MAX; i++)
		atomic_store(&enabled[domain][i], on != 0);
}

void callback_forget(void)
{
	/* Its memory stays: another thread may be about to look whether it is still there. */
	atomic_store(&subscriber, NULL);
	atomic_store(&threads, 0);
	atomic_store(&inside, 0);
	for (uint32_t domain = 0; domain < DOMAINS; domain++)
		enable(false, domain, 0, SITES_MAX - 1);
}

bool callback_is_v2(const struct subscriber *handle)
{
	return handle && handle == atomic_load(&subscriber) && handle->v2;
}

bool callback_subscribed_v2(void)
{
	return callback_is_v2(atomic_load(&subscriber));
}

enum result callback_subscribe(struct subscriber **handle, callback call, void *user, bool v2)
{
	/* What is kept of all there ever were, so that none is given anew. */
	static struct subscriber all[4096];
	static atomic_uint n;
	if (!handle)
		return RESULT_INVALID_PARAMETER;
	if (settings.busy || atomic_load(&subscriber))
		return RESULT_MULTIPLE_SUBSCRIBERS;
	nanosleep(&(struct timespec){ (time_t)(settings.load_ms / 1000),
	                              (long)(settings.load_ms % 1000) * 1000000 },
	          NULL);
	enum result result = session_begin();
	if (result != RESULT_SUCCESS)
		return result;
	struct subscriber *mine = &all[atomic_fetch_add(&n, 1) % 4096];
	struct subscriber *none = NULL;
	*mine = (struct subscriber){ call, user, v2 };
	if (!atomic_compare_exchange_strong(&subscriber, &none, mine))
		return RESULT_MULTIPLE_SUBSCRIBERS;
	*handle = mine;
	return RESULT_SUCCESS;
}

CUPTI_API enum result cuptiSubscribe(struct subscriber **handle, callback call, void *user);
enum result cuptiSubscribe(struct subscriber **handle, callback call, void *user)
{
	FAIL_ON_DEMAND();
	if (settings.other != OTHER_NONE)
		return RESULT_MULTIPLE_SUBSCRIBERS;
	return callback_subscribe(handle, call, user, false);
}

CUPTI_API enum result cuptiUnsubscribe(struct subscriber *handle);
enum result cuptiUnsubscribe(struct subscriber *handle)
{
	FAIL_ON_DEMAND();
	session_need(__func__);
	bool v2 = callback_is_v2(handle);
	if (!handle || !atomic_compare_exchange_strong(&subscriber, &handle, NULL))
		return RESULT_INVALID_PARAMETER;
	if (v2)
		kinds_forget();
	for (uint32_t domain = 0; domain < DOMAINS; domain++)
		enable(false, domain, 0, SITES_MAX - 1);
	return RESULT_SUCCESS;
}

/* Numbers of a domain; 0: there is no such domain. */
static uint32_t domain_sites(uint32_t domain)
{
	static const uint32_t others[DOMAINS] = { [3] = 24, [4] = 3, [5] = 20, [6] = 4 };
	if (domain == SIM_DRIVER || domain == SIM_RUNTIME)
		return site_count((enum sim_layer)domain);
	return domain < DOMAINS ? others[domain] : 0;
}

static bool is_subscriber(const struct subscriber *handle)
{
	return handle && handle == atomic_load(&subscriber);
}

CUPTI_API enum result cuptiEnableCallback(uint32_t on, struct subscriber *handle, uint32_t domain,
                                          uint32_t site);
enum result cuptiEnableCallback(uint32_t on, struct subscriber *handle, uint32_t domain,
                                uint32_t site)
{
	FAIL_ON_DEMAND();
	session_need(__func__);
	if (!is_subscriber(handle) || site == 0 || site >= domain_sites(domain))
		return RESULT_INVALID_PARAMETER;
	enable(on, domain, site, site);
	return RESULT_SUCCESS;
}

CUPTI_API enum result cuptiEnableDomain(uint32_t on, struct subscriber *handle, uint32_t domain);
enum result cuptiEnableDomain(uint32_t on, struct subscriber *handle, uint32_t domain)
{
	FAIL_ON_DEMAND();
	session_need(__func__);
	if (!is_subscriber(handle) || domain_sites(domain) == 0)
		return RESULT_INVALID_PARAMETER;
	enable(on, domain, 1, domain_sites(domain) - 1);
	return RESULT_SUCCESS;
}

CUPTI_API enum result cuptiEnableAllDomains(uint32_t on, struct subscriber *handle);
enum result cuptiEnableAllDomains(uint32_t on, struct subscriber *handle)
{
	session_need(__func__);
	if (!is_subscriber(handle))
		return RESULT_INVALID_PARAMETER;
	for (uint32_t domain = 1; domain < DOMAINS; domain++)
		enable(on, domain, 1, domain_sites(domain) - 1);
	return RESULT_SUCCESS;
}

CUPTI_API enum result cuptiGetCallbackState(uint32_t *on, struct subscriber *handle,
                                            uint32_t domain, uint32_t site);
enum result cuptiGetCallbackState(uint32_t *on, struct subscriber *handle, uint32_t domain,
                                  uint32_t site)
{
	session_need(__func__);
	if (!on || !is_subscriber(handle) || site == 0 || site >= domain_sites(domain))
		return RESULT_INVALID_PARAMETER;
	*on = atomic_load(&enabled[domain][site]);
	return RESULT_SUCCESS;
}

CUPTI_API enum result cuptiGetCallbackName(uint32_t domain, uint32_t site, const char **name);
enum result cuptiGetCallbackName(uint32_t domain, uint32_t site, const char **name)
{
	if (!name || (domain != SIM_DRIVER && domain != SIM_RUNTIME))
		return RESULT_INVALID_PARAMETER;
	*name = site_name((enum sim_layer)domain, site);
	return *name ? RESULT_SUCCESS : RESULT_INVALID_PARAMETER;
}
