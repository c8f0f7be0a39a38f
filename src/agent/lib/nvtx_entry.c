// SPDX-License-Identifier: MIT
/* NVTX's functions, as a program's NVTX calls them, and how they come to be called. */
#include <stdlib.h>
#include <wchar.h>

#include "agent/lib/nvtx.h"
#include "agent/lib/nvtx_abi.h"
#include "agent/wire.h"
#include "base/array.h"

#define ENTRY __attribute__((visibility("default")))

int InitializeInjectionNvtx2(nvtx_get_table get_table);

/* As UTF-8, cut where there is no more room. */
static const char *narrow(char to[AGENT_NVTX_TEXT], const wchar_t *from)
{
	size_t n = 0;

	for (; *from && n + 4 < AGENT_NVTX_TEXT; from++) {
		uint32_t c = (uint32_t)*from;

		if (c < 0x80) {
			to[n++] = (char)c;
			continue;
		}
		if (c >= 0x10000)
			to[n++] = (char)(0xf0 | (c >> 18 & 7));
		if (c >= 0x800)
			to[n++] = (char)((c >= 0x10000 ? 0x80 : 0xe0) |
			                 (c >> 12 & (c >= 0x10000 ? 0x3f : 0x0f)));
		to[n++] =
			(char)((c >= 0x800 ? 0x80 : 0xc0) | (c >> 6 & (c >= 0x800 ? 0x3f : 0x1f)));
		to[n++] = (char)(0x80 | (c & 0x3f));
	}
	to[n] = '\0';
	return to;
}

static const char *message_of(const struct nvtx_attributes *attributes, char wide[AGENT_NVTX_TEXT])
{
	if (!attributes || attributes->bytes < sizeof(*attributes) || !attributes->message)
		return "";
	switch (attributes->message_type) {
	case NVTX_ASCII:
		return attributes->message;
	case NVTX_UNICODE:
		return narrow(wide, attributes->message);
	case NVTX_REGISTERED:
		return nvtx_text_of(attributes->message);
	default:
		return "";
	}
}

/* Newer attributes may be longer, and have the same beginning. */
static struct nvtx_event event_of(const struct nvtx_attributes *attributes,
                                  char wide[AGENT_NVTX_TEXT])
{
	struct nvtx_event event = { .text = message_of(attributes, wide) };

	if (!attributes || attributes->bytes < sizeof(*attributes))
		return event;
	event.category = attributes->category;
	event.color = attributes->color_type == NVTX_ARGB ? attributes->color : 0;
	return event;
}

static struct nvtx_event plain(const char *text)
{
	return (struct nvtx_event){ .text = text ? text : "" };
}

/* ---- domains ------------------------------------------------------------------------------- */

static void domain_mark(struct nvtx_domain *domain, const struct nvtx_attributes *attributes)
{
	char wide[AGENT_NVTX_TEXT];
	struct nvtx_event event = event_of(attributes, wide);

	nvtx_mark(domain, &event);
}

static uint64_t domain_start(struct nvtx_domain *domain, const struct nvtx_attributes *attributes)
{
	char wide[AGENT_NVTX_TEXT];
	struct nvtx_event event = event_of(attributes, wide);

	return nvtx_start(domain, &event);
}

static void domain_end(struct nvtx_domain *domain, uint64_t range)
{
	nvtx_end(range);
}

static int domain_push(struct nvtx_domain *domain, const struct nvtx_attributes *attributes)
{
	char wide[AGENT_NVTX_TEXT];
	struct nvtx_event event = event_of(attributes, wide);

	return nvtx_push(domain, &event);
}

static struct nvtx_text *register_string(struct nvtx_domain *domain, const char *text)
{
	return nvtx_text(text ? text : "");
}

static struct nvtx_text *register_wide_string(struct nvtx_domain *domain, const wchar_t *text)
{
	char wide[AGENT_NVTX_TEXT];

	return nvtx_text(text ? narrow(wide, text) : "");
}

static struct nvtx_domain *create(const char *name)
{
	return name ? nvtx_domain(name) : NULL;
}

static struct nvtx_domain *create_wide(const wchar_t *name)
{
	char wide[AGENT_NVTX_TEXT];

	return name ? nvtx_domain(narrow(wide, name)) : NULL;
}

/* Another module may have the same. */
static void destroy(struct nvtx_domain *domain)
{
}

/* ---- without a domain ---------------------------------------------------------------------- */

static void mark_attributes(const struct nvtx_attributes *attributes)
{
	domain_mark(NULL, attributes);
}

static void mark(const char *text)
{
	struct nvtx_event event = plain(text);

	nvtx_mark(NULL, &event);
}

static void mark_wide(const wchar_t *text)
{
	char wide[AGENT_NVTX_TEXT];
	struct nvtx_event event = plain(text ? narrow(wide, text) : NULL);

	nvtx_mark(NULL, &event);
}

static uint64_t start_attributes(const struct nvtx_attributes *attributes)
{
	return domain_start(NULL, attributes);
}

static uint64_t start(const char *text)
{
	struct nvtx_event event = plain(text);

	return nvtx_start(NULL, &event);
}

static uint64_t start_wide(const wchar_t *text)
{
	char wide[AGENT_NVTX_TEXT];
	struct nvtx_event event = plain(text ? narrow(wide, text) : NULL);

	return nvtx_start(NULL, &event);
}

static int push_attributes(const struct nvtx_attributes *attributes)
{
	return domain_push(NULL, attributes);
}

static int push(const char *text)
{
	struct nvtx_event event = plain(text);

	return nvtx_push(NULL, &event);
}

static int push_wide(const wchar_t *text)
{
	char wide[AGENT_NVTX_TEXT];
	struct nvtx_event event = plain(text ? narrow(wide, text) : NULL);

	return nvtx_push(NULL, &event);
}

static int pop(void)
{
	return nvtx_pop(NULL);
}

/* ---- how they get there -------------------------------------------------------------------- */

static const struct replacement {
	uint32_t module, place;
	nvtx_function function;
} replacements[] = {
	{ NVTX_MODULE_CORE, NVTX_CORE_MarkEx, (nvtx_function)mark_attributes },
	{ NVTX_MODULE_CORE, NVTX_CORE_MarkA, (nvtx_function)mark },
	{ NVTX_MODULE_CORE, NVTX_CORE_MarkW, (nvtx_function)mark_wide },
	{ NVTX_MODULE_CORE, NVTX_CORE_RangeStartEx, (nvtx_function)start_attributes },
	{ NVTX_MODULE_CORE, NVTX_CORE_RangeStartA, (nvtx_function)start },
	{ NVTX_MODULE_CORE, NVTX_CORE_RangeStartW, (nvtx_function)start_wide },
	{ NVTX_MODULE_CORE, NVTX_CORE_RangeEnd, (nvtx_function)nvtx_end },
	{ NVTX_MODULE_CORE, NVTX_CORE_RangePushEx, (nvtx_function)push_attributes },
	{ NVTX_MODULE_CORE, NVTX_CORE_RangePushA, (nvtx_function)push },
	{ NVTX_MODULE_CORE, NVTX_CORE_RangePushW, (nvtx_function)push_wide },
	{ NVTX_MODULE_CORE, NVTX_CORE_RangePop, (nvtx_function)pop },
	{ NVTX_MODULE_CORE2, NVTX_CORE2_DomainMarkEx, (nvtx_function)domain_mark },
	{ NVTX_MODULE_CORE2, NVTX_CORE2_DomainRangeStartEx, (nvtx_function)domain_start },
	{ NVTX_MODULE_CORE2, NVTX_CORE2_DomainRangeEnd, (nvtx_function)domain_end },
	{ NVTX_MODULE_CORE2, NVTX_CORE2_DomainRangePushEx, (nvtx_function)domain_push },
	{ NVTX_MODULE_CORE2, NVTX_CORE2_DomainRangePop, (nvtx_function)nvtx_pop },
	{ NVTX_MODULE_CORE2, NVTX_CORE2_DomainRegisterStringA, (nvtx_function)register_string },
	{ NVTX_MODULE_CORE2, NVTX_CORE2_DomainRegisterStringW,
	  (nvtx_function)register_wide_string },
	{ NVTX_MODULE_CORE2, NVTX_CORE2_DomainCreateA, (nvtx_function)create },
	{ NVTX_MODULE_CORE2, NVTX_CORE2_DomainCreateW, (nvtx_function)create_wide },
	{ NVTX_MODULE_CORE2, NVTX_CORE2_DomainDestroy, (nvtx_function)destroy },
};

/* By NVTX, once for each library of the program that has it. 1: all is well. */
ENTRY int InitializeInjectionNvtx2(nvtx_get_table get_table)
{
	const struct nvtx_callbacks *callbacks = get_table(NVTX_TABLE_CALLBACKS);

	if (!callbacks || callbacks->bytes < sizeof(*callbacks))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(replacements); i++) {
		const struct replacement *it = &replacements[i];
		nvtx_function **table = NULL;
		unsigned places = 0;

		/* Its size is a number of places, although NVTX's word for it is "size". */
		if (callbacks->get_module_functions(it->module, &table, &places) && table &&
		    it->place < places && table[it->place])
			*table[it->place] = it->function;
	}
	return 1;
}
