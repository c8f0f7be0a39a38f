// SPDX-License-Identifier: MIT
#include "report/why_words.h"

#include "base/text.h"

#define NAME_COLUMNS 64 /* the rest of a longer one gives way */

const char *why_words_unknown(const struct facts *facts, const struct why_options *options)
{
	if (options->chosen)
		return "Only a choice of calls or processes was recorded or read: where the time "
		       "went is not known of the rest, so nothing is judged";
	if (!facts->run->returns && !facts->n_works && facts->n_threads)
		return "Where the time went is not known: neither how long calls took was "
		       "recorded, nor when the GPU was busy";
	return NULL;
}

const char *why_words_none(const struct facts *facts, const struct why_options *options)
{
	const struct run_info *run = facts->run;
	const char *unknown = why_words_unknown(facts, options);

	if (unknown)
		return unknown;
	if (facts->left_out)
		return "No work of a GPU is in what there was room for: the recording has more";
	if (run->damaged_chunks || run->end_damaged || run->cut_short)
		return "No work of a GPU is in what could be read of the file";
	if (options->part)
		return "No work of a GPU is in what was read: no process made a CUDA call that "
		       "asks for some in this time";
	return "No work of a GPU was seen: no process made a CUDA call that asks for some in this "
	       "time";
}

void why_words_wait(const struct account_via *via, const struct chains *chains, struct buf *out)
{
	static const char *const waits[ACCOUNT_CAUSES] = {
		[ACCOUNT_COMMUNICATION] = "the other GPUs wait for it in a collective",
		[ACCOUNT_STREAM_WAIT] = "a stream waits for this function of the host",
		[ACCOUNT_GIL] = "Python's GIL is waited for",
		[ACCOUNT_LOCK] = "a lock is waited for",
		[ACCOUNT_PIPE] = "a pipe is waited for",
		[ACCOUNT_NETWORK] = "a socket is waited for",
		[ACCOUNT_CHILD] = "a child is waited for",
	};

	buf_puts(out, waits[via->cause] ? waits[via->cause] : "it is waited for");
	if (via->chain) {
		buf_puts(out, " in ");
		chains_label(chains, via->chain, 2, out);
	}
}

void why_words_name(struct buf *out, const char *name)
{
	AT_END(buf_free) struct buf safe = { 0 };

	text_add_safe(&safe, name ? name : "?");
	text_add_cut(out, safe.data ? safe.data : "?", NAME_COLUMNS);
}

static const char *words_identity(const struct facts *facts, const struct process *process,
                                  enum run_identity_word word)
{
	const struct run_identity *identity =
		run_identity_of(facts->run, machine_pid(process), facts->end_ns);
	const char *text = identity ? identity->words[word] : NULL;

	return text && *text ? text : NULL;
}

const char *why_words_process(const struct facts *facts, const struct process *process)
{
	const char *command = words_identity(facts, process, RUN_IDENTITY_COMMAND);

	return command ? command : process->comm;
}

const char *why_words_host(const struct facts *facts, const struct process *process)
{
	const struct run_info *run = facts->run;
	const char *name = process->machine < run->n_machines
	                           ? run->machines[process->machine].hostname
	                           : NULL;

	if (run->n_machines < 2)
		return NULL;
	return name && *name ? name : "a machine without a name";
}

void why_words_clocks(const struct facts *facts, struct buf *out)
{
	const struct run_info *run = facts->run;
	uint64_t most_ns = 0, least = UINT64_MAX;
	size_t n = 0;

	for (size_t i = 0; i < run->n_machines; i++) {
		const struct run_machine *machine = &run->machines[i];

		if (!machine->n_collectives)
			continue;
		n++;
		most_ns = facts_max(most_ns, machine->clock_error_ns);
		least = facts_min(least, machine->n_collectives);
	}
	if (!n)
		return;
	buf_printf(out,
	           "Clocks of %zu machines are compared by %s%lu collectives whose kernels end "
	           "together: 95 %% are within %s",
	           n + 1, n > 1 ? "at least " : "", least, TEXT_DURATION(most_ns));
}

const char *why_words_user(const struct facts *facts, const struct process *process)
{
	return words_identity(facts, process, RUN_IDENTITY_USER);
}

const char *why_words_rank(const struct facts *facts, const struct process *process)
{
	return words_identity(facts, process, RUN_IDENTITY_RANK);
}

static const char *words_of_stretches(enum account_cause cause)
{
	switch (cause) {
	case ACCOUNT_COMPUTING:
	case ACCOUNT_COMPILING:
	case ACCOUNT_GIL:
		return "samples of what ran there";
	case ACCOUNT_KERNELS:
	case ACCOUNT_COPIES:
	case ACCOUNT_COMMUNICATION:
		return "stretches of the GPU's time";
	case ACCOUNT_LAUNCHING:
	case ACCOUNT_SYNCHRONISATION:
	case ACCOUNT_ALLOCATION:
	case ACCOUNT_COPY_CALL:
	case ACCOUNT_DRIVER:
		return "calls and pauses between them";
	default:
		return "waits";
	}
}

void why_words_sure(const struct answer_change *change, const struct facts *facts, struct buf *out)
{
	static const char *const sure[] = { "Sure", "Mostly sure", "Not sure" };

	buf_printf(out, "%s: ", sure[change->sure]);
	if (change->count)
		buf_printf(out, "%lu %s", change->count, words_of_stretches(change->cause));
	else
		buf_puts(out, "what lies between other things");
	if (!change->chain && change->cause != ACCOUNT_NO_CPU)
		buf_puts(out, ", in many places or none that is known");
	else if (change->sure == ANSWER_MOSTLY)
		buf_puts(out, ", of a recording that lacks some");
	buf_putc(out, '.');
}

static bool words_of_python(uint32_t chain, const struct chains *chains)
{
	const struct stack_frame *frame = chains_frame(chains, chain);

	return frame && frame->kind == FRAME_PYTHON;
}

static const char *words_try_copies(const struct answer_change *change)
{
	if (change->cause == ACCOUNT_COPY_CALL && change->call && change->call->small)
		return "one copy of all of it together, in pinned memory, instead of many small "
		       "ones";
	if (change->work && change->work->pageable)
		return "pinned memory and asynchronous copies, so that they run beside kernels; or "
		       "fewer bytes";
	return "copies on a stream of their own beside the kernels, or fewer bytes";
}

static const char *words_try_computing(const struct answer_change *change, bool python)
{
	if (change->via)
		return "make it cheaper, or give it to more workers, ahead of its use";
	return python ? "do it ahead of its use, in other processes (num_workers of a DataLoader), "
	                "or "
	                "make it cheaper"
	              : "do it ahead of its use, in another thread, or make it cheaper";
}

static const char *words_try_compiling(bool python, bool jax)
{
	if (jax)
		return "shapes that stay the same (pad them), so that jax.jit compiles once; a "
		       "cache that stays (jax_compilation_cache_dir)";
	return python ? "shapes that stay the same: pad them, or let the library take those that "
	                "change (dynamic shapes, another backend)"
	              : "compile once, and keep what came of it";
}

static const char *words_try_launching(const struct answer_change *change, bool python, bool jax)
{
	bool between = change->awaited || change->waits;

	if (between && jax)
		return "ask for what is waited for there once, of all of it together; what is "
		       "launched without waits between can be one function of jax.jit";
	if (between)
		return "ask for what is waited for there once, of all of it together; what is "
		       "launched without waits between can be made fewer and larger, or captured";
	if (jax)
		return "larger batches, or all of it in one function of jax.jit (loops by "
		       "jax.lax.scan)";
	return python ? "larger batches, fused kernels, or a captured graph (torch.compile, CUDA "
	                "graphs)"
	              : "fewer and larger kernels, or a graph of them";
}

static const char *words_try_waits(bool python, bool jax)
{
	if (jax)
		return "do not wait there (no block_until_ready(), float(), np.asarray()), or less "
		       "often";
	return python ? "do not ask for the GPU's values there (.item(), .cpu(), print), or less "
	                "often"
	              : "wait later or less often, so that the next work is queued by then";
}

const char *why_words_try(const struct answer_change *change, const struct chains *chains)
{
	bool python = words_of_python(change->chain, chains);
	bool jax = chains_has_jax(chains, change->chain);

	switch (change->cause) {
	case ACCOUNT_COMPUTING:
		return words_try_computing(change, python);
	case ACCOUNT_COMPILING:
		return words_try_compiling(python, jax);
	case ACCOUNT_GIL:
		return "move that thread's work to another process, or into code that gives up the "
		       "GIL";
	case ACCOUNT_SLEEP:
		return "take the sleep away, or let it happen beside the GPU's work";
	case ACCOUNT_KERNELS:
		return change->awaited
		               ? "more blocks for it, or a later wait: the rest of the GPU has "
		                 "nothing to do meanwhile"
		               : NULL;
	case ACCOUNT_COPIES:
	case ACCOUNT_COPY_CALL:
		return words_try_copies(change);
	case ACCOUNT_ALLOCATION:
		return python ? "keep the memory (no empty_cache() in the loop; buffers that are "
		                "used "
		                "again)"
		              : "allocate once and use the memory again, or a pool "
		                "(cudaMallocAsync)";
	case ACCOUNT_SYNCHRONISATION:
		return words_try_waits(python, jax);
	case ACCOUNT_LAUNCHING:
		return words_try_launching(change, python, jax);
	case ACCOUNT_NO_CPU:
		return "give the process more CPUs, or others fewer (threads of its own, "
		       "neighbours)";
	case ACCOUNT_DISK:
		return "read ahead of its use, in other threads, or from memory";
	case ACCOUNT_FAULT:
		return "touch or lock the memory before it is used, or keep it mapped";
	case ACCOUNT_LOCK:
		return "hold the lock for less time";
	default:
		return NULL;
	}
}

/* GPUs communicate, and only one process that does so was recorded. Who is late waits for nobody,
 * and communicates for a moment. */
static bool words_lack_ranks(const struct accounts *accounts)
{
	const struct process *only = NULL;
	bool much = false;

	for (size_t i = 0; i < accounts->n; i++) {
		double ns =
			account_ns(&accounts->of[i], ACCOUNT_COMMUNICATION, ACCOUNT_COMMUNICATION);

		if (ns <= 0)
			continue;
		if (only && only != accounts->of[i].process)
			return false;
		only = accounts->of[i].process;
		much |= ns >= 0.05 * accounts->of[i].ns;
	}
	return much;
}

static bool words_lack_places(const struct accounts *accounts)
{
	for (size_t i = 0; i < accounts->n; i++)
		if (accounts->of[i].no_room)
			return true;
	return false;
}

/* ---- ranks ----------------------------------------------------------------------------------- */

void why_words_rank_of(const struct facts *facts, const struct collective_rank *rank,
                       struct buf *out)
{
	const struct collective_comm *comm =
		rank->comm == COLLECTIVES_NONE ? NULL : &facts->collectives.comms[rank->comm];
	const char *word = why_words_rank(facts, rank->process);

	if (word && !(comm && comm->id[1] == COLLECTIVES_IN_ONE))
		why_words_name(out, word);
	else if (rank->number >= 0)
		buf_printf(out, "%d", rank->number);
}

void why_words_late(const struct facts *facts, const struct rank_row *late, struct buf *out)
{
	const struct collective_comm *comm = &facts->collectives.comms[late->rank->comm];
	const char *host = why_words_host(facts, late->rank->process);
	double share = 100 * (double)late->n_late / (double)late->n;

	buf_puts(out, "Rank ");
	why_words_rank_of(facts, late->rank, out);
	buf_puts(out, " (");
	if (host) {
		why_words_name(out, host);
		buf_puts(out, ", ");
	}
	buf_printf(out,
	           "pid %u) comes late to %.*f %% of %lu collectives, by %s on average; %u other%s "
	           "for it, %.0f %% of the time",
	           late->rank->process->pid,
	           share<10, share, late->n, TEXT_DURATION(rank_late_mean_ns(late)),
	                   comm->n_ranks - 1, comm->n_ranks> 2
	                   ? "s wait"
	                   : " waits",
	           100 * rank_held(late));
}

/* ---- what is missing ------------------------------------------------------------------------- */

const char *const *why_words_missing(const struct facts *facts, const struct accounts *accounts,
                                     const struct why_options *options)
{
	static const char *sentences[16];
	const struct run_stacks *stacks = &facts->run->stacks;
	size_t n = 0;

	if (!facts->run->gpu_times && !facts->n_works && facts->gpus_busy < 2)
		sentences[n++] =
			"when the GPU was busy: GPU times were not recorded (record --gpu)";
	else if (facts->gpus_busy > 1 && !facts->n_works)
		sentences[n++] = "which of the GPUs that were busy belongs to which process";
	else if (!facts->n_works)
		sentences[n++] = "what the GPU did: none of its work is in what was read";
	if (facts->resolution_ns)
		sentences[n++] =
			"which kernels ran, and pauses of the GPU shorter than its samples "
			"are apart (record --gpu)";
	if (facts->n_works && facts->n_unmeasured)
		sentences[n++] = "what GPUs did between the windows in which they were measured "
				 "(why --gpu, record --gpu)";
	if (!facts->files_samples && !stacks->sample_ns)
		sentences[n++] = "the lines that ran: stacks were not sampled (record --stacks)";
	if (!facts->files_rests && !stacks->blocked && !stacks->host_waits)
		sentences[n++] =
			"what threads waited for: it was not recorded (record --host-waits)";
	if (facts->files_works && facts->files & ~facts->files_works)
		sentences[n++] = "what GPUs did in those of the recordings that have no GPU times "
				 "(record --gpu)";
	if (facts->files_samples && facts->files & ~facts->files_samples)
		sentences[n++] = "the lines that ran in those that have no samples of stacks "
				 "(record --stacks)";
	if (facts->files_rests && facts->files & ~facts->files_rests)
		sentences[n++] = "what threads waited for in those that do not have it (record "
				 "--host-waits)";
	if (words_lack_ranks(accounts))
		sentences[n++] = "whether other ranks were late: one process alone was recorded";
	if (answer_lost_something(facts->run))
		sentences[n++] = "what was lost while it was recorded ('cuscope info' says what)";
	if (answer_lost_stacks(facts->run))
		sentences[n++] = "lines of stacks that were lost or could not be read ('cuscope "
				 "info' says how many)";
	if (accounts->left_out)
		sentences[n++] = "what GPUs or threads have beyond those with most work";
	if (chains_refused(facts->chains))
		sentences[n++] = "the lines of stacks that there was no room for";
	if (words_lack_places(accounts))
		sentences[n++] = "the places of causes that have more of them than there is room "
				 "for";
	if (chains_cut(facts->chains))
		sentences[n++] = "the outermost frames of stacks that are very deep";
	if (facts->left_out)
		sentences[n++] = "what a recording of this size has beyond the room for it";
	if (options->part || options->chosen)
		sentences[n++] = "what the parts have that were not read";
	sentences[n] = NULL;
	return sentences;
}
