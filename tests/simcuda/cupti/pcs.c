// SPDX-License-Identifier: MIT
/*
 * PC sampling of simulated kernels, in continuous mode: a context is enabled, configured, started
 * and stopped, and what ran meanwhile gave a sample of each of 4 schedulers in each period of its
 * time, at three instructions. Its reasons are those that a word in the kernel's name stands for.
 *
 * Kernels of a graph are nobody's that was made before its context was enabled and sampled.
 *
 * A context that is being destroyed must not be touched, none may be enabled at cuptiFinalize, and
 * no other thread may be in a call of the driver's: each ends the process.
 *
 *   SIMCUPTI_PCS_ROOM=N     a hardware buffer of more than N bytes gives CUPTI_ERROR_OUT_OF_MEMORY
 *   SIMCUPTI_PCS_FULL=1     the hardware's buffer is always full
 *   SIMCUPTI_PCS_SLOW_MS=N  cuptiPCSamplingStart takes that long
 *   SIMCUPTI_PCS_ENABLE_MS=N  cuptiPCSamplingEnable does
 *   SIMCUPTI_PCS_STOP_MS=N  cuptiPCSamplingStop does, and no other thread gets on with a call of
 *                           CUDA meanwhile
 *   SIMCUPTI_PCS_LATE=1     nothing is given before cuptiPCSamplingDisable, which leaves it in the
 *                           memory that is CUPTI's own
 *   SIMCUPTI_PCS_SHORT=1    kernels are too short to be met
 *   SIMCUPTI_PCS_COPIES=1   a function's name is a text of its own each time
 */
#include "cupti.h"

#include <elf.h>
#include <string.h>

/* ---- what every module looks like ------------------------------------------------------------ */

static const struct cubin {
	Elf64_Ehdr head;
	Elf64_Shdr sections[3];
	char names[24];
} cubin = {
	.head = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
	          .e_shoff = offsetof(struct cubin, sections),
	          .e_shentsize = sizeof(Elf64_Shdr),
	          .e_shnum = 3,
	          .e_shstrndx = 1 },
	.sections = { [1] = { .sh_name = 1,
	                      .sh_type = SHT_STRTAB,
	                      .sh_offset = offsetof(struct cubin, names),
	                      .sh_size = 24 },
	              [2] = { .sh_name = 11, .sh_type = SHT_PROGBITS } },
	.names = "\0.shstrtab\0.debug_line",
};

const char *pcs_cubin(size_t *bytes)
{
	*bytes = sizeof(cubin);
	return (const char *)&cubin;
}

#if CUPTI_RELEASE >= 11030

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/lib/pcs_abi.h"

#define CONTEXTS   8
#define KERNELS    256
#define PLACES     3
#define CUBIN_CRC  0x5eedcafe
#define SCHEDULERS 4
#define CLOCK_GHZ  1.7
#define PC_BYTES   (CUPTI_RELEASE >= 12040 ? sizeof(struct pcs_pc) : 56)

/* Numbers with gaps, as the real ones have. */
static const struct {
	uint32_t index;
	const char *name;
} reasons[] = {
	{ 0, "smsp__pcsamp_warps_issue_stalled_selected" },
	{ 1, "smsp__pcsamp_warps_issue_stalled_barrier" },
	{ 2, "smsp__pcsamp_warps_issue_stalled_barrier_not_issued" },
	{ 5, "smsp__pcsamp_warps_issue_stalled_long_scoreboard" },
	{ 6, "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued" },
	{ 9, "smsp__pcsamp_warps_issue_stalled_math_pipe_throttle" },
	{ 12, "smsp__pcsamp_warps_issue_stalled_short_scoreboard" },
	{ 13, "smsp__pcsamp_warps_issue_stalled_wait" },
	{ 21, "smsp__pcsamp_warps_issue_stalled_mio_throttle" },
};
#define REASONS    (sizeof(reasons) / sizeof(reasons[0]))
#define NOT_ISSUED 6 /* samples that 5 has as well, as on an H200 */

/* Of 100 samples: where, and why. The reason of the middle one depends on the kernel. */
static const struct {
	const char *word;
	uint32_t reason;
} stalls_of[] = {
	{ "barrier", 1 }, { "bank", 21 }, { "tensor", 9 }, { "", 5 }, /* all others: memory */
};
static const uint64_t offsets[PLACES] = { 0x50, 0x80, 0x1f0 };
static const unsigned int percents[PLACES] = { 15, 70, 15 };

struct sampled {
	char *name;
	uint64_t samples, given;
};

static struct pcs_of {
	void *context;
	uint32_t number;
	bool configured, by_hand, runs;
	uint32_t period;
	uint64_t from_ns, until_ns, range, enabled_ns;
	struct pcs_data *buffer;
	struct sampled kernels[KERNELS];
	size_t n;
	uint64_t foreign;
} all[CONTEXTS]; /* guarded by cupti_lock */

/* When kernels of contexts were first sampled. */
static struct {
	uint32_t number;
	uint64_t ns;
} firsts[64];
static size_t n_firsts; /* guarded, too */

static void *ending[CONTEXTS]; /* contexts that are being destroyed, or were; guarded, too */
static atomic_uint enabled_ones, endings;

bool pcs_is_on(void)
{
	return atomic_load(&enabled_ones) > 0;
}

static unsigned long setting(const char *name)
{
	const char *text = getenv(name);

	return text && *text ? strtoul(text, NULL, 0) : 0;
}

static void take_ms(unsigned long ms)
{
	nanosleep(&(struct timespec){ (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 }, NULL);
}

static atomic_bool held; /* calls of other threads are */
static __thread bool is_holder;

void pcs_wait(void)
{
	while (atomic_load(&held) && !is_holder)
		take_ms(1);
}

static struct pcs_of *of_context(const void *context)
{
	for (int i = 0; i < CONTEXTS; i++) {
		if (context && all[i].context == context)
			return &all[i];
	}
	return NULL;
}

static void need_alive(const char *function, const void *context)
{
	for (int i = 0; i < CONTEXTS; i++) {
		if (context && ending[i] == context)
			misuse(function, "of a context that is being destroyed");
	}
}

/* ---- what runs ------------------------------------------------------------------------------- */

static struct sampled *kernel_of(struct pcs_of *pcs, const char *name)
{
	for (size_t i = 0; i < pcs->n; i++) {
		if (!strcmp(pcs->kernels[i].name, name))
			return &pcs->kernels[i];
	}
	if (pcs->n == KERNELS)
		return NULL;
	pcs->kernels[pcs->n].name = strdup(name);
	return &pcs->kernels[pcs->n++];
}

static void note_first(uint32_t number)
{
	for (size_t i = 0; i < n_firsts; i++) {
		if (firsts[i].number == number)
			return;
	}
	if (n_firsts < sizeof(firsts) / sizeof(firsts[0])) {
		firsts[n_firsts].number = number;
		firsts[n_firsts++].ns = clock_ns();
	}
}

/* Of graphs the real one knows kernels only if they were made while it was enabled, or after. */
static bool is_known(uint32_t context, uint64_t made_ns, uint64_t enabled_ns)
{
	if (made_ns > enabled_ns)
		return true;
	for (size_t i = 0; i < n_firsts && made_ns; i++) {
		if (firsts[i].number == context)
			return made_ns > firsts[i].ns;
	}
	return !made_ns;
}

void pcs_ran(uint32_t context, const char *name, uint64_t made_ns, uint64_t begin_ns,
             uint64_t end_ns)
{
	pthread_mutex_lock(&cupti_lock);
	for (int i = 0; i < CONTEXTS; i++) {
		struct pcs_of *pcs = &all[i];
		uint64_t until = pcs->runs ? UINT64_MAX : pcs->until_ns;
		double period_ns = (double)(1u << pcs->period) / CLOCK_GHZ;
		uint64_t from = begin_ns > pcs->from_ns ? begin_ns : pcs->from_ns;
		uint64_t to = end_ns < until ? end_ns : until;
		struct sampled *kernel;
		uint64_t samples;

		if (!pcs->context || pcs->number != context || !pcs->from_ns || to <= from)
			continue;
		if (!made_ns)
			note_first(context);
		if (setting("SIMCUPTI_PCS_SHORT"))
			continue;
		samples = (uint64_t)(SCHEDULERS * ((double)(to - from) / period_ns + 0.5));
		kernel = is_known(context, made_ns, pcs->enabled_ns) ? kernel_of(pcs, name) : NULL;
		if (kernel)
			kernel->samples += samples;
		else
			pcs->foreign += samples;
	}
	pthread_mutex_unlock(&cupti_lock);
}

static void forget(struct pcs_of *pcs)
{
	memset(pcs, 0, sizeof(*pcs)); /* names stay: the program has them */
	atomic_fetch_sub(&enabled_ones, 1);
}

void pcs_context_ends(void *context)
{
	pthread_mutex_lock(&cupti_lock);
	ending[atomic_fetch_add(&endings, 1) % CONTEXTS] = context;
	if (of_context(context))
		forget(of_context(context));
	pthread_mutex_unlock(&cupti_lock);
}

/* Another context can come to lie where one was. */
void pcs_context_new(void *context)
{
	pthread_mutex_lock(&cupti_lock);
	for (int i = 0; i < CONTEXTS; i++) {
		if (ending[i] == context)
			ending[i] = NULL;
	}
	pthread_mutex_unlock(&cupti_lock);
}

void pcs_forget(void)
{
	if (pcs_is_on())
		misuse("cuptiFinalize", "PC sampling is enabled");
}

/* ---- lines ----------------------------------------------------------------------------------- */

CUPTI_API enum result cuptiGetCubinCrc(struct pcs_crc *given);
enum result cuptiGetCubinCrc(struct pcs_crc *given)
{
	FAIL_ON_DEMAND();
	if (given->size != PCS_CRC_BYTES || !given->cubin || !given->bytes)
		return RESULT_INVALID_PARAMETER;
	given->crc = given->bytes == sizeof(cubin) && !memcmp(given->cubin, &cubin, sizeof(cubin))
	                     ? CUBIN_CRC
	                     : 0;
	return RESULT_SUCCESS;
}

/* Of all but the last instruction. */
CUPTI_API enum result cuptiGetSassToSourceCorrelation(struct pcs_line *given);
enum result cuptiGetSassToSourceCorrelation(struct pcs_line *given)
{
	FAIL_ON_DEMAND();
	if (given->size != PCS_LINE_BYTES || !given->cubin || !given->bytes || !given->function)
		return RESULT_INVALID_PARAMETER;
	if (given->bytes != sizeof(cubin) || memcmp(given->cubin, &cubin, sizeof(cubin)) != 0 ||
	    given->offset == offsets[PLACES - 1])
		return RESULT_UNKNOWN;
	given->line = 80 + (uint32_t)(given->offset / 16);
	given->file = strdup("kernels.cu");
	given->directory = strdup("/home/user/train");
	return RESULT_SUCCESS;
}

/* ---- the program's side ---------------------------------------------------------------------- */

#define PCS_CALL(name, type)                                                                       \
	CUPTI_API enum result name(type *given);                                                   \
	enum result name(type *given)

/* It takes CUPTI's lock and then the context's; who is in a call has that, and asks for CUPTI's. */
static void need_nobody_inside(const char *function)
{
	if (call_others_are_inside())
		misuse(function, "another thread is in a call of the driver's: on a GPU both "
		                 "stand still for ever");
}

/* What each of them checks; the lock is held from here on. */
static enum result enter(const char *function, size_t size, size_t wanted, const void *context,
                         struct pcs_of **pcs)
{
	session_need(function);
	need_nobody_inside(function);
	if (size != wanted || !context)
		return RESULT_INVALID_PARAMETER;
	pthread_mutex_lock(&cupti_lock);
	need_alive(function, context);
	*pcs = of_context(context);
	if (*pcs)
		return RESULT_SUCCESS;
	pthread_mutex_unlock(&cupti_lock);
	return RESULT_INVALID_OPERATION;
}

static enum result leave(enum result result)
{
	pthread_mutex_unlock(&cupti_lock);
	return result;
}

PCS_CALL(cuptiPCSamplingEnable, struct pcs_context)
{
	uint32_t number;

	FAIL_ON_DEMAND();
	take_ms(setting("SIMCUPTI_PCS_ENABLE_MS"));
	need_nobody_inside(__func__);
	if (given->size != PCS_CONTEXT_BYTES || !given->context)
		return RESULT_INVALID_PARAMETER;
	if (session_begin() != RESULT_SUCCESS) /* nobody has to have subscribed */
		return RESULT_NOT_INITIALIZED;
	number = session_profiler()->context_number(given->context);
	pthread_mutex_lock(&cupti_lock);
	need_alive(__func__, given->context);
	if (!number || of_context(given->context))
		return leave(RESULT_INVALID_OPERATION);
	for (int i = 0; i < CONTEXTS; i++) {
		if (all[i].context)
			continue;
		all[i] = (struct pcs_of){ .context = given->context,
			                  .number = number,
			                  .enabled_ns = clock_ns(),
			                  .period = 20 };
		atomic_fetch_add(&enabled_ones, 1);
		return leave(RESULT_SUCCESS);
	}
	return leave(RESULT_NOT_SUPPORTED);
}

PCS_CALL(cuptiPCSamplingGetNumStallReasons, struct pcs_count)
{
	struct pcs_of *pcs;
	enum result result;

	FAIL_ON_DEMAND();
	result = enter(__func__, given->size, PCS_COUNT_BYTES, given->context, &pcs);
	if (result)
		return result;
	*given->n = REASONS;
	return leave(RESULT_SUCCESS);
}

PCS_CALL(cuptiPCSamplingGetStallReasons, struct pcs_reasons)
{
	struct pcs_of *pcs;
	enum result result;

	FAIL_ON_DEMAND();
	result = enter(__func__, given->size, PCS_REASONS_BYTES, given->context, &pcs);
	if (result)
		return result;
	for (size_t i = 0; i < REASONS && i < given->n; i++) {
		given->index[i] = reasons[i].index;
		snprintf(given->names[i], PCS_REASON_NAME, "%s", reasons[i].name);
	}
	return leave(RESULT_SUCCESS);
}

static enum result configure(struct pcs_of *pcs, const struct pcs_attribute *attribute)
{
	unsigned long room = setting("SIMCUPTI_PCS_ROOM");

	switch (attribute->type) {
	case PCS_PERIOD:
		pcs->period = attribute->number;
		return pcs->period >= 5 && pcs->period <= 31 ? RESULT_SUCCESS
		                                             : RESULT_INVALID_OPERATION;
	case PCS_REASONS:
		return attribute->reasons.n == REASONS ? RESULT_SUCCESS : RESULT_INVALID_OPERATION;
	case PCS_SCRATCH_BYTES:
		return RESULT_SUCCESS;
	case PCS_HARDWARE_BYTES:
		return room && attribute->bytes > room ? RESULT_OUT_OF_MEMORY : RESULT_SUCCESS;
	case PCS_MODE:
		return attribute->number == PCS_MODE_CONTINUOUS ? RESULT_SUCCESS
		                                                : RESULT_NOT_SUPPORTED;
	case PCS_START_STOP:
		pcs->by_hand = attribute->number;
		return RESULT_SUCCESS;
	case PCS_FORMAT:
		return attribute->number == PCS_FORMAT_PARSED ? RESULT_SUCCESS
		                                              : RESULT_INVALID_OPERATION;
	case PCS_BUFFER:
		pcs->buffer = attribute->buffer;
		return pcs->buffer ? RESULT_SUCCESS : RESULT_INVALID_OPERATION;
	default:
		return RESULT_INVALID_PARAMETER;
	}
}

PCS_CALL(cuptiPCSamplingSetConfigurationAttribute, struct pcs_configure)
{
	struct pcs_of *pcs;
	enum result result, worst = RESULT_SUCCESS;

	FAIL_ON_DEMAND();
	result = enter(__func__, given->size, PCS_CONFIGURE_BYTES, given->context, &pcs);
	if (result)
		return result;
	for (size_t i = 0; i < given->n; i++) {
		result = configure(pcs, &given->attributes[i]);
		given->attributes[i].status = result;
		if (result)
			worst = result;
	}
	pcs->configured = !worst && pcs->buffer;
	if (pcs->configured && !pcs->by_hand) {
		pcs->runs = true;
		pcs->from_ns = clock_ns();
	}
	return leave(worst);
}

PCS_CALL(cuptiPCSamplingStart, struct pcs_context)
{
	struct pcs_of *pcs;
	enum result result;

	FAIL_ON_DEMAND();
	take_ms(setting("SIMCUPTI_PCS_SLOW_MS"));
	result = enter(__func__, given->size, PCS_CONTEXT_BYTES, given->context, &pcs);
	if (result)
		return result;
	if (!pcs->configured || !pcs->by_hand || pcs->runs)
		return leave(RESULT_INVALID_OPERATION);
	pcs->runs = true;
	pcs->range++;
	pcs->from_ns = clock_ns();
	return leave(RESULT_SUCCESS);
}

PCS_CALL(cuptiPCSamplingStop, struct pcs_context)
{
	struct pcs_of *pcs;
	enum result result;

	FAIL_ON_DEMAND();
	if (setting("SIMCUPTI_PCS_STOP_MS")) {
		is_holder = true;
		atomic_store(&held, true);
		take_ms(setting("SIMCUPTI_PCS_STOP_MS"));
		atomic_store(&held, false);
	}
	result = enter(__func__, given->size, PCS_CONTEXT_BYTES, given->context, &pcs);
	if (result)
		return result;
	if (!pcs->runs || !pcs->by_hand)
		return leave(RESULT_INVALID_OPERATION);
	pcs->runs = false;
	pcs->until_ns = clock_ns();
	return leave(RESULT_SUCCESS);
}

static uint32_t reason_of(const char *name)
{
	size_t i = 0;

	while (!strstr(name, stalls_of[i].word))
		i++;
	return stalls_of[i].reason;
}

/* One instruction of a kernel, whose samples of this call are `samples`. */
static void fill(struct sampled *kernel, size_t place, struct pcs_pc *pc)
{
	uint64_t at = kernel->samples * percents[place] / 100;
	uint32_t reason = reason_of(kernel->name);
	const struct pcs_stall stalls[PLACES][2] = {
		{ { 0, (uint32_t)at }, { 13, 0 } },
		{ { reason, (uint32_t)at }, { NOT_ISSUED, reason == 5 ? (uint32_t)(at / 10) : 0 } },
		{ { 13, (uint32_t)at }, { 12, 0 } },
	};

	pc->cubin = CUBIN_CRC;
	pc->offset = offsets[place];
	pc->function = 1;
	pc->name = setting("SIMCUPTI_PCS_COPIES") ? strdup(kernel->name) : kernel->name;
	pc->n_stalls = 0;
	for (size_t i = 0; i < 2; i++) {
		if (stalls[place][i].samples)
			pc->stalls[pc->n_stalls++] = stalls[place][i];
	}
	if (CUPTI_RELEASE >= 12040)
		pc->correlation = 0;
}

static enum result give(struct pcs_of *pcs, struct pcs_data *data)
{
	uint64_t samples = 0;

	data->n = data->left = 0;
	data->samples = data->dropped = data->foreign_samples = 0;
	data->range = pcs->range;
	data->hardware_full = setting("SIMCUPTI_PCS_FULL") != 0;
	if (data->hardware_full)
		return RESULT_OUT_OF_MEMORY;
	for (size_t i = 0; i < pcs->n; i++) {
		struct sampled *kernel = &pcs->kernels[i];

		for (; kernel->samples && kernel->given < PLACES; kernel->given++) {
			struct pcs_pc *pc = (void *)((char *)data->pcs + data->n * PC_BYTES);

			if (data->n == data->room) {
				data->left += PLACES - kernel->given;
				break;
			}
			if (pc->size != PC_BYTES || !pc->stalls)
				return RESULT_INVALID_PARAMETER;
			fill(kernel, kernel->given, pc);
			for (size_t j = 0; j < pc->n_stalls; j++)
				samples += pc->stalls[j].reason == NOT_ISSUED
				                   ? 0
				                   : pc->stalls[j].samples;
			data->n++;
		}
		if (kernel->given == PLACES)
			kernel->samples = kernel->given = 0;
	}
	data->samples = samples + 3 + pcs->foreign;
	data->dropped = 1;
	data->foreign_samples = 2 + pcs->foreign;
	pcs->foreign = 0;
	return RESULT_SUCCESS;
}

PCS_CALL(cuptiPCSamplingDisable, struct pcs_context)
{
	struct pcs_of *pcs;
	enum result result;

	FAIL_ON_DEMAND();
	result = enter(__func__, given->size, PCS_CONTEXT_BYTES, given->context, &pcs);
	if (result)
		return result;
	if (pcs->buffer && setting("SIMCUPTI_PCS_LATE"))
		give(pcs, pcs->buffer);
	forget(pcs);
	return leave(RESULT_SUCCESS);
}

PCS_CALL(cuptiPCSamplingGetData, struct pcs_get)
{
	struct pcs_of *pcs;
	enum result result;

	FAIL_ON_DEMAND();
	result = enter(__func__, given->size, PCS_GET_BYTES, given->context, &pcs);
	if (result)
		return result;
	if (!pcs->configured || !given->data)
		return leave(RESULT_INVALID_OPERATION);
	if (!setting("SIMCUPTI_PCS_LATE"))
		return leave(give(pcs, given->data));
	((struct pcs_data *)given->data)->n = 0;
	return leave(RESULT_SUCCESS);
}

#else

bool pcs_is_on(void)
{
	return false;
}

void pcs_wait(void)
{
}

void pcs_ran(uint32_t context, const char *name, uint64_t made_ns, uint64_t begin_ns,
             uint64_t end_ns)
{
}

void pcs_context_ends(void *context)
{
}

void pcs_context_new(void *context)
{
}

void pcs_forget(void)
{
}

#endif
