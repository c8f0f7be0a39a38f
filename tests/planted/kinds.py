# SPDX-License-Identifier: MIT
"""What is planted, and what `cuscope why` is to say of it."""

from judging import LAUNCH, Kind


def attached(name, *words, **more):
    return Kind("attach_" + name, *words, attach=True, program=name, gain=False, **more)


def contained(name, *words, **more):
    return Kind("contained_" + name, *words, attach=True, contained=True, program=name, gain=False, **more)


def apart(name, *words):
    return Kind("apart_" + name, *words, apart=True, program=name, gain=False)


ALLOC = LAUNCH + ",cuMemAlloc_v2=3000,cuMemFree_v2=2000"

# A driver that is as fast as a real one: waits are over a moment after what they wait for.
FAST = "cuLaunchKernel=4,cuMemcpyDtoHAsync_v2=5,cuStreamSynchronize=2,cuCtxSynchronize=2"
CACHE = FAST + ",cuMemAlloc_v2=250,cuMemFree_v2=300"
SYNC = "synchronisation copy_call"

KINDS = [
    # the thread that launches
    Kind("sleep", "sleep", "pause_between_steps"),
    Kind("prep", "computing", "prepare_batch"),
    Kind("compile", "compiling", "compile_for_shape"),
    Kind("collate", "computing", "collate_batch"),
    Kind("uneven", "computing", "refill_buffer"),
    Kind("disk_reads", "disk", "read_samples"),
    Kind("fsync", "disk", "save_state", realtime=True),
    Kind("checkpoint", "disk", "write_checkpoint", realtime=True),
    Kind("faults", "fault computing", "fill_fresh_memory"),
    Kind("mapped", "fault disk", "look_up_embedding"),
    Kind("rivals", "no_cpu", "tokenize train_step"),
    Kind("child", "computing child", "convert_in_child run_converter"),
    Kind("log", "sleep pipe", "read_log_slowly log_step"),
    Kind("file_lock", "sleep lock", "hold_file_lock take_file_lock"),
    # another thread or process
    Kind("thread", "computing", "transform_in_thread"),
    Kind("thread_sleep", "sleep", "fetch_in_thread"),
    Kind("eventfd", "computing", "decode_in_pool"),
    Kind("barrier", "computing", "slow_share"),
    Kind("spin", "computing", "spin_for_flag"),
    Kind("poll", "sleep", "poll_with_naps"),
    Kind("lock", "computing lock", "rebuild_index"),
    Kind("lock_sleep", "sleep lock", "flush_table"),
    Kind("pipe", "computing", "transform_in_worker"),
    Kind("pipe_sleep", "sleep", "fetch_in_worker"),
    Kind("socketpair", "computing", "transform_in_worker"),
    Kind("tcp", "computing", "transform_in_worker"),
    Kind("relay", "computing", "transform_in_worker"),
    Kind("futex", "computing", "transform_in_worker"),
    Kind("crowd", "computing", "transform_in_thread"),
    # CUDA calls and the GPU
    Kind("tiny", "launching", "launch_small", never=(), costs="cuLaunchKernel=40"),
    Kind("sync_context", "synchronisation", "wait_for_context"),
    Kind("sync_stream", "synchronisation", "wait_for_stream"),
    Kind("sync_event", "synchronisation", "wait_for_event"),
    Kind("query", "synchronisation", "ask_event"),
    Kind("sync_each", "synchronisation", "run_and_wait", never=(), costs="cuLaunchKernel=20", spin=True),
    Kind("loss", "synchronisation copy_call", "read_loss"),
    Kind("pageable", "copies copy_call", "upload_pageable"),
    Kind("pinned_wait", "copies copy_call synchronisation", "upload_and_wait"),
    Kind("download", "copies copy_call synchronisation", "download_activations"),
    Kind("memset", "copies kernels", "clear_buffers"),
    Kind("alloc", "allocation", "make_buffers", costs=ALLOC),
    Kind("alloc_pinned", "allocation", "make_pinned_buffers", costs=LAUNCH + ",cuMemHostAlloc=5000,cuMemFreeHost=2000"),
    Kind("module", "driver", "load_kernels", costs=LAUNCH + ",cuModuleLoadData=6000"),
    Kind("stream_create", "driver", "open_stream", costs=LAUNCH + ",cuStreamCreate=3000,cuStreamDestroy_v2=2000"),
    Kind("graph_tiny", "launching", "replay_tiny_graphs", never=(), costs="cuLaunchKernel=4,cuGraphLaunch=60"),
    Kind("graph_rebuild", "driver launching", "rebuild_graph", never=(), costs=LAUNCH + ",cuGraphInstantiateWithFlags=5000"),
    Kind("turns", "stream_wait", "launch_in_turns"),
    Kind("copy_turns", "copies stream_wait", "upload_in_turn"),
    Kind("default_stream", "stream_wait", "launch_on_default"),
    Kind("callback", "computing stream_wait", "average_on_host"),
    Kind("long_turns", "stream_wait", "launch_long_in_turns"),
    Kind("statistics_first", "stream_wait kernels", "wait_for_statistics"),
    Kind("pool", "computing", "scale_in_pool"),
    # the same on a GPU with a fast driver
    Kind("items", SYNC, "gradient_norms", costs=FAST, spin=True),
    Kind("layers", "synchronisation", "time_layer", costs=FAST, spin=True),
    Kind("logged_layers", SYNC + " launching", "log_activations", costs=FAST, spin=True),
    Kind("evaluated", SYNC + " launching", "count_right", never=("a graph of them",), costs=FAST, spin=True),
    Kind("ready", "synchronisation", "block_until_ready", costs=FAST),
    Kind("words", "launching", "decode_words launch_next", never=(), costs=FAST, spin=True),
    Kind("fresh_memory", "allocation", "take_memory release_memory", costs=CACHE, spin=True),
    Kind("one_cpu", "no_cpu", "statistics"),
    Kind("one_cpu_threads", "no_cpu", "statistics"),
    Kind("deep", "computing", "compile_for_length optimize_graph"),
    Kind("py_items", SYNC, "gradient_norms", costs=FAST, spin=True),
    Kind("py_cache", "allocation", "pad_batch empty_blocks", costs=CACHE, spin=True),
    Kind("py_deep", "computing", "crop_and_score"),
    Kind("py_library_pool", "computing", "scale_volume"),
    Kind("py_generator", "computing", "texts_of"),
    # ranks: two processes on two GPUs
    Kind("rank_sleep", "sleep", "fetch_on_one_rank"),
    Kind("rank_prep", "computing", "tokenize_on_one_rank"),
    Kind("rank_kernels", "kernels", "run_longer_kernels"),
    Kind("rank_batch", "kernels", "run_larger_batch"),
    apart("rank_sleep", "sleep", "fetch_on_one_rank"),
    apart("rank_prep", "computing", "tokenize_on_one_rank"),
    # four programs with NCCL's collectives
    Kind("nccl_sleep", "sleep", "fetch_on_one_rank"),
    Kind("nccl_prep", "computing", "tokenize_on_one_rank"),
    Kind("nccl_kernels", "kernels", "run_longer_kernels"),
    Kind("nccl_seldom", "sleep", "save_now_and_then"),
    Kind("nccl_halves", "sleep", "fetch_on_one_rank"),
    Kind("nccl_shards", "sleep", "fetch_on_one_rank"),
    # in a root, and namespaces of pids, mounts and users, of their own
    contained("prep", "computing", "prepare_batch"),
    contained("rank_sleep", "sleep", "fetch_on_one_rank", ranks=2),
    contained("rank_prep", "computing", "tokenize_on_one_rank", ranks=2),
    contained("pipe_sleep", "sleep", "fetch_in_worker"),
    contained("py_decode", "computing", "decode_sample"),
    # C++
    Kind("cpp_future", "computing", "decode_image"),
    Kind("cpp_pool", "sleep", "fetch_record"),
    Kind("cpp_regex", "computing", "tokenize_line"),
    Kind("cpp_throw", "computing", "parse_or_throw"),
    Kind("cpp_reader", "computing lock", "export_weights"),
    # Python
    Kind("py_sleep", "sleep", "pause_between_steps"),
    Kind("py_decode", "computing", "decode_sample"),
    Kind("py_gc", "computing", "collect_garbage"),
    Kind("py_compile", "compiling", "attention_of_shape"),
    Kind("py_json", "computing", "parse_records"),
    Kind("py_pickle", "computing", "unpack_batch"),
    Kind("py_regex", "computing", "clean_text"),
    Kind("py_logging", "computing", "log_metrics"),
    Kind("py_subprocess", "child sleep", "run_tool"),
    Kind("py_fsync", "disk", "save_metrics", realtime=True),
    Kind("py_print", "sleep pipe", "read_slowly print_step"),
    Kind("py_gil", "gil", "burn", costs="cuLaunchKernel=60"),
    Kind("py_lock", "sleep lock", "flush_cache"),
    Kind("py_loader_sleep", "sleep", "fetch_shards"),
    Kind("py_loader_decode", "computing gil", "decode_shards"),
    Kind("py_pool", "sleep", "download_shard"),
    Kind("py_worker", "computing", "decode_shards"),
    Kind("py_pipe", "sleep", "answer_slowly"),
    Kind("py_http", "computing", "look_up_tokens"),
    Kind("py_server", "computing network", "look_up_tokens ask_server", beside="serve"),
    Kind("py_tiny", "launching", "launch_many", never=(), costs="cuLaunchKernel=40"),
    Kind("py_item", "synchronisation", "read_loss"),
    Kind("py_alloc", "allocation", "empty_cache", costs=ALLOC),
    # processes that ran before
    attached("sleep", "sleep", "pause_between_steps"),
    attached("idle", says="No work of a GPU was seen"),
    attached("pipe", "computing", "transform_in_worker"),
    attached("tcp", "computing", "transform_in_worker"),
    attached("thread", "computing", "transform_in_thread"),
    attached("py_sleep", "sleep", "pause_between_steps"),
    attached("py_worker", "computing", "decode_shards"),
    attached("py_gil", "gil", "burn", costs="cuLaunchKernel=60"),
    # two at once, the larger first
    Kind("two_sleep_prep", "sleep", "pause_long", second=("computing", "prepare_short")),
    Kind("two_disk_prep", "computing disk", "prepare_batch read_samples", second=("computing disk", "prepare_batch read_samples")),
    Kind("two_worker_prep", "computing", "transform_in_worker", second=("computing", "check_results")),
    Kind("two_alloc_sleep", "allocation", "two_buffers", costs=LAUNCH + ",cuMemAlloc_v2=6000,cuMemFree_v2=2000",
         second=("sleep", "two_pause")),
    Kind("two_loss_sleep", "sleep", "two_pause", second=("synchronisation copy_call", "read_loss")),
    Kind("two_py_gc_sleep", "computing", "collect_garbage", second=("sleep", "nap step")),
    Kind("two_py_worker_json", "computing", "decode_long_shards", second=("computing", "read_labels")),
    Kind("two_rounds", "launching", "step_rounds run_forward", second=(SYNC, "residual"), never=(), costs=FAST, spin=True),
    Kind("two_sleep_items", "sleep", "rate_limit", second=(SYNC, "gradient_norms"), costs=FAST, spin=True),
    Kind("two_prep_cache", "computing", "decode_pictures", second=("allocation", "take_memory release_memory"), costs=CACHE, spin=True),
    # nothing is wrong
    Kind("busy"),
    Kind("nccl_busy"),
    Kind("busy_streams"),
    Kind("busy_small"),
    Kind("busy_graph"),
    Kind("busy_overlap"),
    Kind("busy_loader"),
    Kind("busy_sleepers"),
    Kind("busy_statistics"),
    Kind("busy_writer"),
    Kind("busy_rare_wait"),
    Kind("busy_host_work"),
    Kind("busy_cold"),
    Kind("busy_threads"),
    Kind("busy_long"),
    Kind("busy_callback"),
    Kind("rank_busy"),
    apart("rank_busy"),
    Kind("py_busy"),
    Kind("py_busy_threads"),
    Kind("py_busy_loader"),
    Kind("py_busy_worker"),
    attached("busy"),
]


def held_out(name, *words, **more):
    return Kind(name, *words, script="held_out.py", **more)


# Written without knowledge of how `why` concludes, and run before any rule was changed for them: what is wrong of these is in
# docs/results/why.md, and no failure of the suite.
HELD_OUT = [
    # locks, other threads and processes
    held_out("metrics_lock", "disk lock", "sync_metrics_file add_metric", realtime=True),
    held_out("convoy", "computing lock", "update_shared_table read_shared_table"),
    held_out("flag_process", "computing", "render_scene spin_on_shared_flag"),
    held_out("eight", "sleep", "step_slow_environment"),
    held_out("window", "sleep pipe", "collect_batch"),
    held_out("resolve", "sleep network", "answer_query resolve_store_name"),
    held_out("pinning", "allocation", "pin_batch", costs=LAUNCH + ",cuMemHostAlloc=7000,cuMemFreeHost=1500"),
    # CPUs and memory
    held_out("quota", "no_cpu", "encode_prompts"),
    held_out("gather", "computing", "gather_rows"),
    held_out("unbuffered", "computing", "write_unbuffered"),
    # CUDA calls and the GPU
    held_out("swap", "copies copy_call", "swap_model"),
    held_out("small_copies", "copies copy_call", "upload_tensors", costs=LAUNCH + ",cuMemcpyHtoDAsync_v2=20"),
    held_out("histogram", "sleep stream_wait", "write_histogram log_histogram"),
    held_out("batch_of_one", "launching synchronisation", "infer_one", never=(), costs=FAST, spin=True),
    held_out("shapes", "driver", "compile_for_shape", costs=LAUNCH + ",cuModuleLoadData=30000"),
    held_out("evaluate", "computing", "count_right_answers"),
    # Python
    held_out("py_inflate", "computing", "inflate_shard"),
    held_out("py_exceptions", "computing", "parse_row parse_field"),
    held_out("py_tokenizer", "computing", "encode_batch encode_sample"),
    held_out("py_pad", "computing", "pad_sequences"),
    held_out("py_random", "computing", "augment_noise"),
    held_out("py_deepcopy", "computing", "snapshot_state"),
    held_out("py_tolist", "computing copy_call synchronisation copies", "predictions_to_list"),
    held_out("py_spawn", "child computing pipe", "ask_temperature"),
    held_out("py_collate_json", "computing", "collate_records"),
    held_out("py_queue_of_one", "sleep", "read_next_shard"),
    held_out("py_pool_of_threads", "computing gil", "decode_in_threads decode_all"),
    held_out("py_async", "sleep", "serve_requests next_request"),
    held_out("py_save", "disk", "save_every_tenth", realtime=True),
    # two at once, the larger first
    held_out("two_window_swap", "sleep pipe", "collect_batch", second=("copies copy_call", "swap_model")),
    held_out("two_eight_score", "sleep", "step_slow_environment", second=("computing", "score_environments")),
    held_out("two_py_spawn_tokens", "child sleep", "run_slow_tool", second=("computing", "encode_batch encode_sample")),
    held_out("two_py_shard_inflate", "sleep", "answer_late", second=("computing", "inflate_shard")),
    # nothing is wrong
    held_out("busy_log_behind"),
    held_out("busy_uneven_loader"),
    held_out("busy_late_value"),
    held_out("py_busy_inflate"),
    held_out("py_busy_async"),
    held_out("py_busy_metrics"),
]


def unmet(name, *words, **more):
    return Kind(name, *words, script="unmet.py", **more)


def unseen(name, *words, **more):
    return Kind(name, *words, script="unseen.py", **more)


def untold(name, *words, **more):
    return Kind(name, *words, script="untold.py", **more)


# Later ones, of the same manner; their first run is in docs/results/why.md, too.
UNSEEN = [
    # CUDA calls and the GPU
    unseen("host_register", "allocation driver", "register_batch", costs=LAUNCH + ",cuMemHostRegister_v2=6000,cuMemHostUnregister=2500"),
    unseen("pool_trim", "allocation driver", "trim_pool", costs=LAUNCH + ",cuMemPoolTrimTo=8000"),
    unseen("clone", "copies", "clone_weights"),
    # CPUs
    unseen("team", "no_cpu computing", "scale_share wait_for_team scale_in_team"),
    unseen("herd", "no_cpu lock computing", "wake_everyone wait_for_turn"),
    unseen("low_worker", "no_cpu", "decode_in_background"),
    # the system
    unseen("small_files", "computing", "read_small_files"),
    unseen("fork_snapshot", "computing fault", "snapshot_by_fork"),
    unseen("control_poll", "sleep", "check_for_stop"),
    unseen("timer_tick", "sleep", "wait_for_tick"),
    # Python
    unseen("py_signal_timer", "computing", "dump_stack"),
    unseen("py_profile_hook", "computing", "on_call"),
    unseen("py_pin_thread", "computing gil copy_call", "pin_batch"),
    unseen("py_log_lock", "computing lock gil", "format_slowly log_loss"),
    unseen("py_rpc", "sleep", "look_up_features"),
    unseen("py_sqlite", "disk", "record_step", realtime=True),
    # two at once, the larger first
    unseen("two_poll_files", "sleep", "ask_and_wait", second=("computing", "read_small_files")),
    unseen("two_py_quota_hook", "sleep", "wait_for_quota", second=("computing", "on_call")),
    # nothing is wrong
    unseen("busy_checkpoint_behind"),
    unseen("busy_beats"),
    unseen("py_busy_sqlite"),
    # the same once more: ways to wait
    unmet("aio_offload", "disk", "swap_in_optimizer", realtime=True),
    unmet("inotify", "computing", "write_shard"),
    unmet("signal_wait", "computing", "finish_sample"),
    unmet("unix_chatter", "network computing", "ask_vocabulary answer_token"),
    unmet("messages", "sleep", "answer_query_slowly"),
    unmet("permit", "sleep", "wait_for_permit"),
    unmet("inversion", "no_cpu", "rewrite_cache"),
    # Python
    unmet("py_missing_import", "computing", "pick_parser parse_samples"),
    unmet("py_protocol", "computing", "check_samples"),
    unmet("py_weakrefs", "computing", "on_tensor_gone drop_tensors"),
    unmet("py_event_loop", "computing", "summarize_request"),
    unmet("py_process_pool", "computing", "augment_in_pool augment_samples"),
    # two at once, the larger first
    unmet("two_memory_sort", "driver", "check_memory", second=("computing", "order_by_length compare_lengths"),
          costs=LAUNCH + ",cuMemGetInfo_v2=14000"),
    unmet("two_py_flag_sort", "sleep", "wait_for_flag", second=("computing", "bucket_by_length length_of")),
    # nothing is wrong
    unmet("busy_pipeline"),
    unmet("py_busy_futures"),
    # the same once more: the GPU
    untold("late_event", "stream_wait", "reduce_after_backward"),
    untold("poll_stream", "sleep", "poll_stream_with_naps"),
    # threads and processes
    untold("yield_loop", "computing", "tokenize_prompt yield_until_tokenized"),
    untold("map_lock", "fault computing lock", "fill_cache_of_pages map_scratch"),
    untold("datagrams", "sleep", "store_metric_slowly"),
    # Python
    untold("py_detokenize", "computing", "detokenize_all"),
    untold("py_optimizer_loop", "launching", "update_parameters", never=(), costs="cuLaunchKernel=15"),
    untold("py_zip_anew", "computing", "read_sample"),
    untold("py_snapshot_thread", "gil", "pickle_state"),
    # two at once, the larger first
    untold("two_py_tool_update", "computing", "parse_slowly", second=("launching", "update_parameters"), costs="cuLaunchKernel=15"),
    # nothing is wrong
    untold("busy_decode"),
    untold("py_busy_engine"),
]
