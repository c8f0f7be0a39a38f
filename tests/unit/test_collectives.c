// SPDX-License-Identifier: MIT
/* Calls of collectives, put together over ranks by communicator and number. */
#include "nccl_scene.h"

#include "analysis/collectives.h"
#include "analysis/gpu_ids.h"
#include "base/clock.h"

#define KERNEL 100.0 /* us from a call to its kernel */

static struct collectives all;
static uint64_t correlation;

static void scene_event(const struct event *event)
{
	collectives_event(&all, event);
}

static int set_up(void **state)
{
	collectives_init(&all);
	correlation = 0;
	return 0;
}

static int tear_down(void **state)
{
	collectives_clear(&all);
	return 0;
}

/* What a call has done meanwhile: a launch, and its kernel. */
static void launch(uint32_t rank, double at_us, double end_us)
{
	struct call call = launch_at("cuLaunchKernel", at_us, NULL);
	struct event event = call_event(ranks[rank], 1, &call);
	struct activity run = { .kind = ACTIVITY_KERNEL,
		                .begin_ns = US(at_us + KERNEL),
		                .end_ns = US(end_us) };
	struct event ran = activity_event(ranks[rank], &run);

	call.correlation = run.correlation = ++correlation;
	collectives_event(&all, &event);
	collectives_kernel(&all, &ran);
}

static void reduce_of(uint32_t rank, uint64_t comm, double at_us, double end_us, uint64_t bytes)
{
	struct call call = nccl("ncclAllReduce", at_us, at_us + 8);

	set_arg(&call, "comm", comm);
	set_arg(&call, "bytes", bytes);
	launch(rank, at_us + 1, end_us);
	see(rank, call);
}

static void reduce(uint32_t rank, double at_us, double end_us)
{
	reduce_of(rank, 0x5500 + rank, at_us, end_us, 4096);
}

static void end(void)
{
	struct run_info run = default_run_info();

	collectives_end(&all, &run);
}

static void test_collectives_are_matched_by_number_and_not_by_time(void **state)
{
	for (uint32_t i = 0; i < RANKS; i++)
		init(i, 77);
	/* rank 2 is a whole collective behind */
	for (uint32_t step = 0; step < 10; step++)
		for (uint32_t i = 0; i < RANKS; i++)
			reduce(i, 1000 * step + (i == 2 ? 1500 : 100 * i), 1000 * step + 1900);
	end();
	assert_int_equal(all.n_all, 10);
	assert_int_equal(all.n_comms, 1);
	assert_int_equal(all.comms[0].matched, 10);
	assert_int_equal(all.comms[0].n_ranks, RANKS);
	for (uint32_t step = 0; step < 10; step++) {
		const struct collective *one = &all.all[step];

		assert_true(one->by_gpu);
		assert_int_equal(one->n, RANKS);
		assert_int_equal(all.ranks[all.calls[one->last].rank].process->pid, 102);
		assert_int_equal(one->first_ns, US(1000 * step + 1 + KERNEL));
		assert_int_equal(one->last_ns, US(1000 * step + 1501 + KERNEL));
		assert_int_equal(one->end_ns, US(1000 * step + 1900));
	}
}

static void test_calls_that_come_out_of_order_have_their_numbers(void **state)
{
	for (uint32_t i = 0; i < 2; i++)
		init(i, 77);
	reduce(0, 100, 300);
	reduce(0, 1100, 1300);
	reduce(1, 1150, 1300); /* the later one is told first */
	reduce(1, 150, 300);
	end();
	assert_int_equal(all.n_all, 2);
	assert_int_equal(all.all[0].first_ns, US(101 + KERNEL));
	assert_int_equal(all.all[0].last_ns, US(151 + KERNEL));
	assert_int_equal(all.all[1].last_ns, US(1151 + KERNEL));
}

static void test_communicators_do_not_mix(void **state)
{
	struct call call;

	for (uint32_t i = 0; i < RANKS; i++) {
		init(i, 77);
		call = nccl("ncclCommSplit", 20, 30);
		set_arg(&call, "comm", 0x5500 + i);
		set_arg(&call, "color", i / 2);
		set_arg(&call, "made", 0x6600 + i);
		see(i, call);
	}
	for (uint32_t i = 0; i < RANKS; i++)
		reduce_of(i, 0x6600 + i, 100 + i, 300, 4096);
	reduce_of(0, 0x6600, 1000, 1100, 4096);
	end();
	assert_int_equal(all.n_comms, 3);
	assert_int_equal(all.n_all, 2);
	assert_int_equal(all.alone, 1);
	for (size_t i = 0; i < 2; i++) {
		const struct collective *one = &all.all[i];
		uint32_t a = all.ranks[all.calls[one->first].rank].process->pid;

		assert_int_equal(one->n, 2);
		assert_int_equal(all.ranks[all.calls[one->first + 1].rank].process->pid, a + 1);
		assert_int_equal(a % 2, 0);
	}
}

static void test_an_address_that_is_used_again_is_another_communicator(void **state)
{
	for (uint32_t i = 0; i < 2; i++)
		init(i, 77);
	reduce(0, 100, 200);
	reduce(1, 100, 200);
	for (uint32_t i = 0; i < 2; i++)
		init(i, 78);
	reduce(1, 300, 400);
	reduce(0, 350, 400);
	end();
	assert_int_equal(all.n_comms, 2);
	assert_int_equal(all.n_all, 2);
	assert_int_equal(all.comms[0].matched, 1);
	assert_int_equal(all.comms[1].matched, 1);
}

static void test_a_group_is_one_kernel(void **state)
{
	for (uint32_t i = 0; i < 2; i++) {
		struct call call;

		init(i, 77);
		see(i, nccl("ncclGroupStart", 100, 101));
		for (int k = 0; k < 3; k++) {
			call = nccl("ncclAllReduce", 102 + k, 103 + k);
			set_arg(&call, "comm", 0x5500 + i);
			see(i, call);
		}
		launch(i, 111 + 10 * i, 400);
		see(i, nccl("ncclGroupEnd", 110, 140));
		reduce(i, 1000, 1300);
	}
	end();
	assert_int_equal(all.n_all, 4);
	assert_int_equal(all.comms[0].matched, 4);
	for (size_t i = 0; i < 4; i++) {
		const struct collective *one = &all.all[i];
		bool joined = all.calls[one->first].joined;

		assert_int_equal(all.calls[one->first + 1].joined, joined);
		assert_int_equal(one->by_gpu, !joined);
	}
}

static void test_each_communicator_of_a_group_has_its_kernel(void **state)
{
	uint64_t kernels[2][2];

	for (uint32_t i = 0; i < 2; i++) {
		struct call call;

		init(i, 77);
		call = nccl("ncclCommSplit", 20, 30);
		set_arg(&call, "comm", 0x5500 + i);
		set_arg(&call, "made", 0x6600 + i);
		see(i, call);
		see(i, nccl("ncclGroupStart", 100, 101));
		for (int k = 0; k < 4; k++) { /* by turns */
			call = nccl("ncclAllReduce", 102 + k, 103 + k);
			set_arg(&call, "comm", (k % 2 ? 0x6600 : 0x5500) + i);
			see(i, call);
		}
		launch(i, 111, 400);
		kernels[i][0] = correlation;
		launch(i, 112, 500);
		kernels[i][1] = correlation;
		launch(i, 113, 510); /* of neither */
		see(i, nccl("ncclGroupEnd", 110, 140));
	}
	end();
	assert_int_equal(all.n_all, 4);
	for (size_t i = 0; i < 4; i++) {
		const struct collective *one = &all.all[i];
		const struct collective_call *calls = &all.calls[one->first];

		for (uint32_t k = 0; k < one->n && !calls[k].joined; k++)
			assert_int_equal(calls[k].correlation,
			                 kernels[k][all.comms[one->comm].size == 0]);
		assert_int_equal(calls[0].correlation == 0, calls[0].joined);
	}
}

static void test_what_is_not_known_is_matched_with_none(void **state)
{
	struct call call;

	reduce(0, 100, 200); /* made before anybody looked */
	reduce(1, 100, 200);
	init(2, 77);
	call = nccl("ncclSend", 10, 20);
	set_arg(&call, "comm", 0x5502);
	see(2, call);
	end();
	assert_int_equal(all.n_all, 0);
	assert_int_equal(all.unknown, 2);
	assert_int_equal(all.unpaired, 1);
}

static void test_ranks_that_do_not_agree_are_left_out(void **state)
{
	for (uint32_t i = 0; i < 2; i++)
		init(i, 77);
	for (uint32_t step = 0; step < 5; step++) /* the first of rank 1 is missing */
		reduce_of(0, 0x5500, 1000 * step, 1000 * step + 500, step % 2 ? 64 : 128);
	for (uint32_t step = 1; step < 5; step++)
		reduce_of(1, 0x5501, 1000 * step, 1000 * step + 500, step % 2 ? 64 : 128);
	end();
	assert_int_equal(all.n_all, 0);
	assert_int_equal(all.comms[0].unlike, 4);
}

static void test_with_lost_calls_nothing_is_matched(void **state)
{
	struct run_info run = default_run_info();

	for (uint32_t i = 0; i < 2; i++) {
		init(i, 77);
		reduce(i, 100, 200);
	}
	run.lost[LOST_RING_FULL] = 1;
	collectives_end(&all, &run);
	assert_true(all.lost);
	assert_int_equal(all.n_all, 0);
}

static void end_with_lost(void)
{
	struct run_info run = default_run_info();

	run.lost[LOST_NOT_RUN] = 1;
	collectives_end(&all, &run);
}

static void test_samples_that_were_lost_are_no_calls(void **state)
{
	struct run_info run = default_run_info();

	for (uint32_t i = 0; i < 2; i++) {
		init(i, 77);
		reduce(i, 100, 200);
	}
	run.lost[LOST_MOMENTS] = 1;
	collectives_end(&all, &run);
	assert_false(all.lost);
	assert_int_equal(all.n_all, 1);
}

/* Calls at 1 to 9 ms; rank 1's are some less, and its counts go on as they were. */
static void some_lost(uint32_t lost)
{
	for (uint32_t i = 0; i < 2; i++)
		for (uint32_t step = 1; step < 10; step++)
			if (i != 1 || step != lost)
				reduce_of(i, 0x5500 + i, 1000 * step, 1000 * step + 500, 64);
	for (uint32_t i = 0; i < 2; i++) {
		known(i, 500);
		for (uint32_t step = 1; step <= 8; step++)
			counted(i, 1000 * step + 600, 1000 * step + 700, 100 + step);
	}
	end_with_lost();
}

static void test_what_lies_between_equal_counts_was_not_lost(void **state)
{
	some_lost(0);
	assert_true(all.lost);
	assert_int_equal(all.n_all, 7); /* the first and the last have a count on one side alone */
	assert_int_equal(all.all[0].first_ns, US(2101)); /* its kernel */
	assert_int_equal(all.uncounted, 4);
	assert_int_equal(all.alone, 0);
}

static void test_the_longest_part_without_a_loss_counts(void **state)
{
	some_lost(3);
	/* of rank 1: behind the count at 3.6 ms, from where on one more had come before */
	assert_int_equal(all.n_all, 5);
	assert_int_equal(all.all[0].first_ns, US(4101));
	for (size_t i = 0; i < all.n_all; i++)
		assert_int_equal(all.all[i].last_ns, all.all[i].first_ns);
	assert_int_equal(all.alone, 2); /* rank 0's at 2 and 3 ms */
}

static void test_who_was_seen_to_be_made_counts_from_nothing(void **state)
{
	for (uint32_t i = 0; i < 2; i++) {
		init(i, 77);
		for (uint32_t step = 1; step < 5; step++)
			reduce_of(i, 0x5500 + i, 1000 * step, 1000 * step + 500, 64);
		known(i, 500);
		counted(i, 3600, 3700, 3);
	}
	end_with_lost();
	assert_int_equal(all.n_all, 3);
	assert_int_equal(all.all[0].first_ns, US(1101));
	assert_int_equal(all.uncounted, 2);
}

static void test_where_calls_were_lost_no_rank_may_lack(void **state)
{
	for (uint32_t i = 0; i < 3; i++) {
		known(i, 500);
		for (uint32_t step = 1; step < 5; step++)
			reduce_of(i, 0x5500 + i, 1000 * step, 1000 * step + 500, 64);
		counted(i, 1600, 1700, 1);
		if (i < 2)
			counted(i, 4600, 4700, 4);
	}
	end_with_lost();
	assert_int_equal(all.n_all, 0);
	assert_int_equal(all.alone, 3);
}

static void test_without_gpu_times_calls_tell_who_comes_last(void **state)
{
	for (uint32_t i = 0; i < 2; i++) {
		struct call call = nccl("ncclAllGather", 100 + 50 * i, 160);

		init(i, 77);
		set_arg(&call, "comm", 0x5500 + i);
		see(i, call);
	}
	end();
	assert_int_equal(all.n_all, 1);
	assert_false(all.all[0].by_gpu);
	assert_int_equal(all.all[0].last_ns, US(150));
	assert_int_equal(all.all[0].end_ns, 0);
}

/* Rank 0 was seen from its 100th on, rank 1 from its 102nd; each is at the same one at each time.
 */
static void two_that_run(unsigned steps)
{
	for (unsigned step = 0; step < steps; step++) {
		reduce(0, 1000 * step, 1000 * step + 500);
		if (step >= 2)
			reduce(1, 1000 * step + 50, 1000 * step + 500);
	}
}

static void test_what_came_before_is_known_by_what_was_counted(void **state)
{
	two_that_run(10);
	for (uint32_t i = 0; i < 2; i++) {
		known(i, 5000);
		counted(i, 4004, 4600, 105);   /* within the fifth, or behind it */
		counted(i, 6500, 6600, 107);   /* between two */
		counted(i, 99000, 99100, 250); /* nobody looked any more */
	}
	end();
	assert_int_equal(all.n_all, 8);
	assert_int_equal(all.alone, 2);
	assert_int_equal(all.comms[0].size, RANKS);
	for (size_t i = 0; i < 8; i++)
		assert_int_equal(all.all[i].last_ns - all.all[i].first_ns, 50000);
}

/* Both at once, exactly: who recorded had seen all calls; of one kind it had not. */
static void reminded(uint32_t rank, double at_us, uint64_t reduces)
{
	struct call call;

	told("recorder.rank", "comm:addr id:addr id2:addr rank:int ranks:int AllReduce:u64 "
	                      "ReduceScatter:u64 AllGather:u64 Broadcast:u64 Reduce:u64");
	call = nccl("recorder.rank", at_us, at_us);
	set_arg(&call, "comm", 0x5500 + rank);
	set_arg(&call, "id", 0xabc);
	set_arg(&call, "rank", rank);
	set_arg(&call, "ranks", RANKS);
	set_arg(&call, "AllReduce", reduces);
	set_arg(&call, "AllGather", UINT64_MAX);
	see(rank, call);
}

static void test_a_recorder_reminds_of_what_came_before_it_held_calls(void **state)
{
	two_that_run(10);
	for (uint32_t i = 0; i < 2; i++)
		reminded(i, 6500, 107);
	end();
	assert_int_equal(all.n_all, 8);
	assert_int_equal(all.alone, 2);
	assert_int_equal(all.comms[0].id[0], 0xabc);
	assert_int_equal(all.ranks[1].number, 1);
	assert_int_equal(all.n_told, 0); /* RAS did not tell that */
}

static void test_a_count_that_is_not_known_is_none(void **state)
{
	two_that_run(10);
	for (uint32_t i = 0; i < 2; i++)
		reminded(i, 6500, UINT64_MAX);
	end();
	assert_int_equal(all.n_all, 0);
	assert_int_equal(all.uncounted, 18);
}

static void test_counts_that_leave_a_choice_tell_nothing(void **state)
{
	two_that_run(10);
	for (uint32_t i = 0; i < 2; i++) {
		known(i, 5000);
		counted(i, 3500, 6500, 105); /* three calls begin meanwhile */
	}
	end();
	assert_int_equal(all.n_all, 0);
	assert_int_equal(all.uncounted, 18);
}

static void test_counts_that_contradict_each_other_tell_nothing(void **state)
{
	two_that_run(10);
	for (uint32_t i = 0; i < 2; i++) {
		known(i, 5000);
		counted(i, 4500, 4600, 105);
		counted(i, 6500, 6600, i ? 107 : 109);
	}
	end();
	assert_int_equal(all.n_all, 0);
	assert_int_equal(all.uncounted, 10);
	assert_int_equal(all.alone, 8);
}

static void test_what_lies_behind_a_contradiction_counts_where_answers_agree(void **state)
{
	two_that_run(10);
	for (uint32_t i = 0; i < 2; i++) {
		known(i, 5000);
		counted(i, 2600, 2700, i ? 100 : 103); /* of rank 1 one more is not seen */
		counted(i, 3600, 3700, i ? 104 : 104);
		counted(i, 7600, 7700, 108);
	}
	end();
	assert_false(all.lost);
	assert_int_equal(all.n_all, 4);
	assert_int_equal(all.all[0].first_ns, US(4101));
	assert_int_equal(all.uncounted, 4);
	assert_int_equal(all.alone, 6);
}

/* Rank 1 was not seen to be made, as its process was looked into too late. */
static void one_made_one_known(bool known_first)
{
	if (known_first)
		known(1, 90);
	init(0, 77);
	known(0, 100);
	if (!known_first)
		known(1, 110);
	for (uint32_t step = 1; step < 5; step++)
		for (uint32_t i = 0; i < 2; i++)
			if (!i || step > 1)
				reduce_of(i, 0x5500 + i, 1000 * step, 1000 * step + 500, 64);
	counted(1, 2600, 2700, 2);
	end();
	assert_int_equal(all.n_all, 3);
	assert_int_equal(all.alone, 1);
	assert_int_equal(all.ranks[0].comm, all.ranks[1].comm);
	assert_int_equal(all.comms[all.ranks[1].comm].id[0], 77);
	assert_int_equal(all.comms[all.ranks[1].comm].n_ranks, 2);
}

static void test_who_was_not_seen_to_be_made_is_with_those_that_were(void **state)
{
	one_made_one_known(false);
}

static void test_who_was_known_before_others_were_made_is_with_them(void **state)
{
	one_made_one_known(true);
}

static void test_less_than_was_seen_is_no_count(void **state)
{
	two_that_run(10);
	known(0, 5000);
	counted(0, 6500, 6600, 3);
	end();
	assert_int_equal(all.uncounted, 10);
}

/* Of a file that somebody made: each of very many ranks would ask each of very many answers. */
static void test_answers_without_end_cost_little(void **state)
{
	uint64_t begin_ns = clock_now_ns();
	struct call call;

	told("ras.communicator", RAS_COMM);

	for (uint64_t comm = 0; comm < 2000; comm++) {
		for (int k = 0; k < 2; k++)
			reduce_of(0, 0x100000 + comm, 10 * comm + k, 10 * comm + 5, 64);
		call = nccl("ras.communicator", 1, 1);
		set_arg(&call, "comm", 0x100000 + comm);
		set_arg(&call, "id", 0xabc);
		set_arg(&call, "id2", 0xdef);
		see(0, call);
	}
	for (int i = 0; i < 100000; i++)
		counted(0, 1, 2, 5);
	end();
	assert_int_equal(all.n_all, 0);
	assert_true(clock_now_ns() - begin_ns < 2000000000ull);
}

static void test_kernels_that_communicate_have_names(void **state)
{
	static const char *const do_so[] = {
		"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
		"ncclSymkDevKernel_AllGather_LL",
		"void vllm::cross_device_reduce_2stage<__half, 8>(vllm::RankData*, int)",
		"_ZN7deep_ep9intranode8dispatchILi8EEEvPi",
		"void deep_ep::internode_ll::combine<true>(void*)",
		"tensorrt_llm::kernels::oneShotAllReduceKernel<float, 8>",
		"void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport",
		"nvshmemi_barrier_on_stream_kernel",
		"void c10d::symmetric_memory::one_shot_all_reduce_kernel<4>",
	};
	static const char *const do_not[] = {
		"void deep_ep::layout::get_dispatch_layout<256>(int const*)",
		"void at::native::reduce_kernel<512, 1>(float)",
		"cutlass::gemm",
		"",
	};

	for (size_t i = 0; i < sizeof(do_so) / sizeof(do_so[0]); i++)
		assert_true(kernel_name_is_communication(do_so[i]));
	for (size_t i = 0; i < sizeof(do_not) / sizeof(do_not[0]); i++)
		assert_false(kernel_name_is_communication(do_not[i]));
}

/* One process, a GPU each: ranks are the handles in their order, calls come in groups. */
static void test_ranks_of_one_process(void **state)
{
	struct call call = nccl("ncclCommInitAll", 0, 10);

	set_arg(&call, "devices", 3);
	set_arg(&call, "comm0", 0x5500);
	set_arg(&call, "comm1", 0x5501);
	set_arg(&call, "comm2", 0x5502);
	set_arg(&call, "comm3", 0x9999); /* what lies behind them */
	see(0, call);
	for (uint32_t step = 0; step < 2; step++) {
		see(0, nccl("ncclGroupStart", 100 + 100 * step, 101 + 100 * step));
		for (uint32_t i = 0; i < 3; i++)
			reduce_of(0, 0x5500 + i, 102 + 100 * step + i, 0, 64);
		see(0, nccl("ncclGroupEnd", 110 + 100 * step, 120 + 100 * step));
	}
	collectives_end(&all, &(struct run_info){ 0 });
	assert_int_equal(all.n_ranks, 3);
	assert_int_equal(all.n_all, 2);
	assert_int_equal(all.all[0].n, 3);
	assert_int_equal(all.comms[all.all[0].comm].size, 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(all.ranks[i].number, i);
}

static void test_a_call_that_did_not_return_hides_no_loss(void **state)
{
	for (uint32_t i = 0; i < 2; i++) {
		known(i, 500);
		for (uint32_t step = 1; step <= 5; step++)
			if (i != 1 || step != 3) /* rank 1's third is lost */
				reduce_of(i, 0x5500 + i, 1000 * step, 1000 * step + 500, 64);
		if (i == 1) { /* its sixth waits within the call: RAS has not counted it */
			struct call call = nccl("ncclAllReduce", 6000, 6000);

			call.end_ns = 0;
			set_arg(&call, "comm", 0x5501);
			set_arg(&call, "bytes", 64);
			see(1, call);
		} else {
			reduce_of(0, 0x5500, 6000, 6500, 64);
		}
		counted(i, 600, 700, 100);
		counted(i, 7600, 7700, i ? 105 : 106);
	}
	end_with_lost();
	for (size_t i = 0; i < all.n_all; i++) {
		const struct collective_call *c = &all.calls[all.all[i].first];
		print_message("matched %llu us with %llu us\n",
		              (unsigned long long)(c[0].begin_ns / 1000),
		              (unsigned long long)(c[1].begin_ns / 1000));
	}
	for (size_t i = 0; i < all.n_all; i++) {
		const struct collective_call *c = &all.calls[all.all[i].first];
		assert_int_equal(c[0].begin_ns, c[1].begin_ns);
	}
}

/* Two GPUs of one process: rank 1 of the communicator, too, is process 0's. */
static void counted_as(uint32_t process, int number, double at, uint64_t reduces)
{
	struct call call;

	told("ras.rank", RAS_RANK);
	call = nccl("ras.rank", at, at + 100);
	set_arg(&call, "id", 0xabc);
	set_arg(&call, "id2", 0xdef);
	set_arg(&call, "rank", number);
	set_arg(&call, "ranks", RANKS);
	set_arg(&call, "pid", ranks[process]->pid);
	set_arg(&call, "AllReduce", reduces);
	see(process, call);
}

static void test_counts_of_another_rank_of_the_process_are_not_its_own(void **state)
{
	struct call call;

	known(0, 500);
	call = nccl("ras.communicator", 500, 500); /* its second GPU's */
	set_arg(&call, "comm", 0x7700);
	set_arg(&call, "id", 0xabc);
	set_arg(&call, "id2", 0xdef);
	set_arg(&call, "rank", 1);
	set_arg(&call, "ranks", RANKS);
	see(0, call);
	/* GPU 1's thread is one call ahead of GPU 0's all the time */
	for (uint32_t step = 1; step <= 8; step++) {
		reduce_of(0, 0x5500, 1000 * step + 500, 1000 * step + 700, 64);
		reduce_of(0, 0x7700, 1000 * step, 1000 * step + 700, 64);
	}
	for (uint32_t step = 1; step <= 8; step++) {
		double at = 1000 * step + 200; /* GPU 1 has called, GPU 0 has not */

		if (step % 2) {
			counted_as(0, 0, at, 100 + step - 1);
			counted_as(0, 1, at, 100 + step);
		} else {
			counted_as(0, 1, at, 100 + step);
			counted_as(0, 0, at, 100 + step - 1);
		}
	}
	end();
	for (size_t i = 0; i < all.n_all; i++) {
		const struct collective_call *c = &all.calls[all.all[i].first];
		print_message("matched %llu us with %llu us, number %llu\n",
		              (unsigned long long)(c[0].begin_ns / 1000),
		              (unsigned long long)(c[1].begin_ns / 1000),
		              (unsigned long long)c[0].number);
	}
	print_message("n_all %zu uncounted %llu alone %llu\n", all.n_all,
	              (unsigned long long)all.uncounted, (unsigned long long)all.alone);
	for (size_t i = 0; i < all.n_all; i++) {
		const struct collective_call *c = &all.calls[all.all[i].first];
		assert_int_equal(c[0].begin_ns / 1000000, c[1].begin_ns / 1000000);
	}
	assert_true(all.n_all > 0);
}

static void test_one_rank_without_a_count_leaves_the_others_matched(void **state)
{
	for (uint32_t i = 0; i < 3; i++) {
		known(i, 500);
		for (uint32_t step = 1; step <= 4; step++)
			reduce_of(i, 0x5500 + i, 1000 * step, 1000 * step + 500, 64);
		if (i < 2)
			counted(i, 2600, 2700, 2);
	}
	end();
	print_message("n_all %zu uncounted %llu alone %llu\n", all.n_all,
	              (unsigned long long)all.uncounted, (unsigned long long)all.alone);
	assert_int_equal(all.n_all, 4);
	assert_int_equal(all.alone, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_call_that_did_not_return_hides_no_loss,
		                                set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_counts_of_another_rank_of_the_process_are_not_its_own, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_one_rank_without_a_count_leaves_the_others_matched, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_ranks_of_one_process, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_answers_without_end_cost_little, set_up,
		                                tear_down),
		cmocka_unit_test(test_kernels_that_communicate_have_names),
		cmocka_unit_test_setup_teardown(test_what_came_before_is_known_by_what_was_counted,
		                                set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_recorder_reminds_of_what_came_before_it_held_calls, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(test_a_count_that_is_not_known_is_none, set_up,
		                                tear_down),
		cmocka_unit_test_setup_teardown(test_counts_that_leave_a_choice_tell_nothing,
		                                set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_counts_that_contradict_each_other_tell_nothing,
		                                set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_what_lies_behind_a_contradiction_counts_where_answers_agree, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_who_was_not_seen_to_be_made_is_with_those_that_were, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_who_was_known_before_others_were_made_is_with_them, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_less_than_was_seen_is_no_count, set_up,
		                                tear_down),
		cmocka_unit_test_setup_teardown(
			test_collectives_are_matched_by_number_and_not_by_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_calls_that_come_out_of_order_have_their_numbers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_communicators_do_not_mix, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_an_address_that_is_used_again_is_another_communicator, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(test_each_communicator_of_a_group_has_its_kernel,
		                                set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_group_is_one_kernel, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_is_not_known_is_matched_with_none, set_up,
		                                tear_down),
		cmocka_unit_test_setup_teardown(test_ranks_that_do_not_agree_are_left_out, set_up,
		                                tear_down),
		cmocka_unit_test_setup_teardown(test_with_lost_calls_nothing_is_matched, set_up,
		                                tear_down),
		cmocka_unit_test_setup_teardown(test_samples_that_were_lost_are_no_calls, set_up,
		                                tear_down),
		cmocka_unit_test_setup_teardown(test_what_lies_between_equal_counts_was_not_lost,
		                                set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_longest_part_without_a_loss_counts, set_up,
		                                tear_down),
		cmocka_unit_test_setup_teardown(test_who_was_seen_to_be_made_counts_from_nothing,
		                                set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_where_calls_were_lost_no_rank_may_lack, set_up,
		                                tear_down),
		cmocka_unit_test_setup_teardown(test_without_gpu_times_calls_tell_who_comes_last,
		                                set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, set_up_all, tear_down_all);
}
