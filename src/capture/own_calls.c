// SPDX-License-Identifier: MIT
/* What hooks saw that users asked for: calls of the layer hook, which are no CUDA calls. */
#include "capture/pipeline_inside.h"

#include <string.h>

#include "base/xalloc.h"
#include "capture/call_texts.h"
#include "probe/own_hooks.h"

static const struct function *function_of(struct pipeline *pipeline, const struct own_hook *hook)
{
	struct function *function = pipeline->own_functions[hook->id];

	if (function)
		return function;
	function = pipeline->own_functions[hook->id] = xcalloc(1, sizeof(*function));
	function->id = pipeline->n_functions++;
	function->name = hook->name;
	function->lib = hook->lib;
	function->layer = LAYER_HOOK;
	function->cls = CLASS_OTHER;
	function->api = hook->api;
	return function;
}

const struct function *pipeline_hooked_function(struct pipeline *pipeline, uint16_t id)
{
	const struct own_hook *hook = own_hooks_get(pipeline->options.own, id);

	return hook ? function_of(pipeline, hook) : NULL;
}

/* A value; 0: what is read at the return, of a call that did not return. Until then it is where
 * that lies. */
static uint64_t number_of(const struct hook_spec *spec, const struct wire_hook *record, size_t i)
{
	if (i >= record->head.words ||
	    (record->head.flags & (WIRE_UNFINISHED | WIRE_NO_RETURN) && spec->value[i].on_return))
		return 0;
	return record->value[i];
}

/* The values that are shown, in their order; a product is made here. */
static void fill_args(const struct hook_spec *spec, const struct wire_hook *record,
                      struct api_call *args)
{
	for (size_t i = 0; i < spec->n_values && args->n_args < API_ARGS_MAX; i++) {
		const struct spec_value *value = &spec->value[i];
		uint64_t number = number_of(spec, record, i);

		if (value->hidden)
			continue;
		if (value->table && value->factor < record->head.words)
			number = spec_value_times(value, number,
			                          number_of(spec, record, value->factor));
		args->arg[args->n_args++] = number;
	}
}

/* A page that was not there when the program looked, which cannot wait for it; here it is read. */
static const char *text_of_process(const struct hook_spec *spec, const struct wire_hook *record,
                                   char *text, size_t room)
{
	for (size_t i = 0; i < spec->n_values && i < record->head.words; i++) {
		const struct spec_value *value = &spec->value[i];

		if (value->type == SPEC_STR && !spec_is_kernel(spec) && record->value[i] &&
		    call_text_read(record->head.tgid, record->value[i], text, room))
			return text;
	}
	return NULL;
}

int pipeline_on_hook(struct pipeline *pipeline, const struct wire_hook *record, struct err *err)
{
	const struct own_hook *hook = own_hooks_get(pipeline->options.own, record->head.hook);
	struct event event = { .type = EVENT_OTHER_CALL,
		               .time_ns = record->head.time_ns,
		               .tid = record->head.tid };
	struct known_process *process;
	struct call call = { 0 };
	char text[WIRE_HOOK_TEXT];
	int r;

	if (!hook)
		return 0;
	r = pipeline_process_get(pipeline, record->head.tgid, NULL, event.time_ns, &process, err);
	if (r)
		return r;
	pipeline_thread_get(pipeline, record->head.tgid, event.tid);
	call.function = function_of(pipeline, hook);
	call.begin_ns = record->begin_ns;
	if (record->head.flags & WIRE_NO_RETURN)
		call.flags |= CALL_NO_RETURN;
	else if (record->head.flags & WIRE_UNFINISHED)
		call.flags |= CALL_UNFINISHED;
	else
		call.end_ns = record->head.time_ns;
	if (hook->spec->kind == SPEC_URETPROBE || hook->spec->kind == SPEC_KRETPROBE) {
		call.begin_ns = record->head.time_ns; /* a moment: its return */
		call.end_ns = 0;
		call.flags |= call.flags & CALL_UNFINISHED ? 0 : CALL_NO_RETURN;
	}
	fill_args(hook->spec, record, &call.args);
	if (!record->head.bytes && (record->head.flags & WIRE_UNREADABLE))
		call.text = text_of_process(hook->spec, record, text, sizeof(text));
	if (record->head.bytes && record->head.bytes <= sizeof(text)) {
		memcpy(text, record->text, record->head.bytes);
		text[record->head.bytes - 1] = '\0';
		call.text = text;
	}
	if (record->stack && pipeline->options.stack_of_hook)
		call.stack = pipeline->options.stack_of_hook(pipeline->options.data,
		                                             record->head.tgid, record->stack);
	if (pipeline->options.hooked)
		pipeline->options.hooked(pipeline->options.data, record->head.tgid, &call);
	event.process = process->process;
	event.call = &call;
	return pipeline_push(pipeline, &event, err);
}
