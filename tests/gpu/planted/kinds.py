# SPDX-License-Identifier: MIT
"""What is planted in the programs of this folder, and what `cuscope why` is to say of it.

A name that begins with @ is the place of that comment in the program's file.
"""

import os

from judging import Kind as PlantedKind

HERE = os.path.dirname(os.path.abspath(__file__))
IDLE = "No work of a GPU was seen"


def marked(file, mark):
    with open(os.path.join(HERE, file), encoding="utf-8") as source:
        for number, line in enumerate(source, 1):
            if line.rstrip().endswith(f"# {mark}"):
                return f"{file}:{number}"
    raise ValueError(f"no {mark} in {file}")


class Kind(PlantedKind):
    """`late`: the rank of two that the other waits for; `hangs`: it comes no more."""

    def __init__(self, file, name, *words, gpus=1, env=None, late=None, hangs=False, **more):
        super().__init__(name, *words, program=file, **more)
        self.names = tuple(marked(file, name) if name.startswith("@") else name for name in self.names)
        self.gpus, self.env = gpus, env or {}
        self.late, self.hangs = late, hangs


def of(file, *rows):
    return [Kind(file, *(row if isinstance(row, tuple) else (row,))) for row in rows]


SYNC = "synchronisation copy_call"
# Six launches follow each wait here: without the waits the host is as late nearly (it needs 94 % of the time, the GPU
# 31 %), so what bounds it are launches. A graph of them all is no advice, as long as the waits stay.
BETWEEN = SYNC + " launching"

HOST = of(
    "torch_host.py",
    ("slow_getitem", "computing", "decode_picture"),
    ("slow_collate", "computing", "pad_sequences"),
    ("tokenize_in_step", "computing", "tokenize"),
    ("numpy_noise", "computing fault", "add_noise"),
    ("loop_sleep", "sleep", "@sleeps"),
    ("collect_each_step", "computing", "free_memory"),
    ("fsync_journal", "disk", "append_record"),
    ("tool_each_step", "computing child fault pipe", "read_temperature"),
    ("checkpoint_often", "computing disk copy_call copies fault", "save_checkpoint"),
    ("error_rate_each_step", "computing", "edit_distance"),
    ("fresh_memory", "fault computing", "assemble_batch"),
    ("cold_map", "fault disk", "look_up_rows"),
    ("cold_reads", "disk", "read_rows"),
    ("one_cpu_for_all", "no_cpu", "one_cpu_for_all model.py"),
    ("compiled_for_each_length", "computing", "@recompiles"),
    ("offloaded_optimizer", "computing copy_call copies", "offloaded_update"),
    ("sampled_on_host", "computing", "sample_top_p"),
)

FEED = of(
    "torch_feed.py",
    ("workers_compute", "computing", "augment_picture"),
    ("workers_sleep", "sleep", "fetch_remote"),
    ("workers_disk", "disk", "read_sample read_rows"),
    ("one_slow_worker", "computing", "read_old_format"),
    ("watch_in_thread", "gil", "summarise_history"),
    ("lock_of_exporter", "sleep lock", "export_values"),
    ("thread_decompresses", "computing", "decompress_shard"),
    ("thread_pool_decodes", "computing gil", "decode_record"),
    ("process_cleans", "computing", "clean_words produce_batches"),
    ("feature_server", "computing", "compute_features"),
    ("object_store", "sleep", "answer_after_disk"),
    ("manager_dict", "computing network pipe", "count_words serve_client"),
    ("hook_in_backward", "computing", "note_gradient"),
)

CALLS = of(
    "torch_calls.py",
    ("empty_cache_each_step", "allocation", "release_memory"),
    ("item_of_each_gradient", SYNC, "gradient_norms"),
    ("logits_to_host", "copy_call copies synchronisation fault", "keep_predictions"),
    ("pageable_upload", "copies copy_call", "upload_volume"),
    ("pinned_in_turn", "copies", "copy_in"),
    ("adam_for_each", "launching", "update_parameters", ()),
    ("many_small_copies", SYNC, "move_targets"),
    ("masks_of_each_sample", BETWEEN, "select_valid"),
    ("wait_for_each_layer", "synchronisation", "time_layer"),
    ("words_one_by_one", "launching", "decode_word", ()),
    ("average_one_by_one", "launching", "average_parameters", ()),
    ("samples_one_by_one", "launching", "embed_sample", ()),
    ("check_of_each_gradient", SYNC, "check_finite"),
    ("mask_from_host", "computing copies copy_call fault", "new_mask"),
)

NO_SPLIT = "max_split_size_mb:128"  # as the message of memory that is out advises
CALLS += [Kind("torch_calls.py", "memory_nearly_full", "allocation", "pad_batch",
               env={"PYTORCH_CUDA_ALLOC_CONF": NO_SPLIT, "PYTORCH_ALLOC_CONF": NO_SPLIT})]

JAX = of(
    "jax_planted.py",
    ("jax_block_each_layer", "synchronisation", "check_layer"),
    ("jax_activations_to_host", "copy_call copies synchronisation fault", "keep_activations"),
    ("jax_traced_for_each_length", "computing driver", "@traces crop_and_score"),
    ("jax_host_callback", "computing", "look_up_on_host"),
    ("jax_without_jit", "launching computing", "polynomial_features", ()),
    ("jax_batches_by_numpy", "computing fault", "make_batch"),
)

CUPY = of(
    "cupy_planted.py",
    ("cupy_get_each_step", "copy_call copies fault", "download_field"),
    ("cupy_row_by_row", "launching", "relax_rows", ()),
    ("cupy_kernel_for_each_step", "computing driver", "build_kernel"),
    ("cupy_without_pool", "allocation", "filter_image"),
    ("cupy_wait_after_each", "synchronisation", "checked"),
    ("cupy_residual_each_round", SYNC, "residual"),
    ("cupy_median_by_numpy", "computing", "host_median"),
)

TWO = [
    Kind("torch_two.py", "two_sleep_items", "sleep", "rate_limit", second=(SYNC, "gradient_norms")),
    Kind("torch_two.py", "two_decode_cache", "computing", "decode_picture", second=("allocation", "release_memory")),
    Kind("torch_two.py", "two_noise_nap", "computing", "add_noise", second=("sleep", "rest_briefly")),
    Kind("torch_two.py", "two_distance_upload", "computing", "edit_distance", second=("copies copy_call", "upload_volume")),
]

HEALTHY = [
    *of("torch_healthy.py", "fed_training", "fed_by_workers", "loss_now_and_then", "graph_of_inference", "big_inference",
        "compiled_training", "copies_overlapped"),
    Kind("torch_healthy.py", "single_precision", bound="fp32 fp32_alone"),
    Kind("torch_healthy.py", "bound_by_memory", bound="dram"),
    Kind("torch_healthy.py", "idle_server", says=IDLE),
    *of("jax_planted.py", "jax_fed_training", "jax_loop_on_gpu"),
    *of("cupy_planted.py", "cupy_fed_products", "cupy_fed_transforms"),
]

RANKS = [Kind("ranks_planted.py", *row, gpus=2, late=late) for late, *row in (
    ("1", "ranks_sleep", "sleep", "fetch_late"),
    ("1", "ranks_slow_loader", "computing", "augment_picture"),
    ("1", "ranks_more_kernels", "kernels", "uneven_batch"),
    ("1", "ranks_score_on_one", "computing", "score_words edit_distance"),
    ("0", "ranks_checkpoint_on_first", "computing disk copy_call copies fault", "write_history save_checkpoint"),
    ("1", "sharded_sleep", "sleep", "fetch_late"),
    ("1", "sharded_slow_loader", "computing", "augment_picture"),
    ("1", "sharded_more_kernels", "kernels", "uneven_batch"),
    (None, "ranks_healthy"),
    (None, "ranks_sharded"),
)]
RANKS.append(Kind("ranks_planted.py", "ranks_hang", "sleep", "wait_for_more_data", gpus=2, late="1", hangs=True, gain=False))

KINDS = [*HOST, *FEED, *CALLS, *JAX, *CUPY, *TWO, *HEALTHY, *RANKS]

# Written without knowledge of how `why` concludes, before any of them had run: `run --held-out` chooses these.
HELD_OUT = [
    *of(
        "torch_held_out.py",
        ("gzip_in_step", "computing", "read_shard"),
        ("exceptions_in_parser", "computing", "parse_table parse_value"),
        ("lists_of_words", SYNC + " computing", "texts_of"),
        ("async_server", "sleep", "serve_one ask_store"),
        ("lock_over_fsync", "disk lock", "write_points add_point"),
        ("flag_of_process", "computing", "render_frame spin_for_frame"),
        ("eight_environments", "sleep", "slow_physics"),
        ("name_each_step", "sleep network", "answer_names resolve_name"),
        ("queue_of_one", "sleep", "open_next_shard"),
        ("window_of_server", "sleep lock", "collect_requests"),
        ("workers_of_each_epoch", "computing child fault pipe lock wait", "short_epoch"),
        ("pinned_in_step", "computing copy_call copies allocation fault", "pin_batch"),
        ("models_in_turn", "copies copy_call computing fault allocation synchronisation", "bring_model"),
        ("evaluated_each_step", BETWEEN, "count_right"),
        ("one_sample_at_a_time", "launching", "micro_step", ()),
        ("logged_layers", BETWEEN, "log_activations"),
        ("average_on_host", "computing copy_call copies fault", "host_average"),
        ("statistics_first", "stream_wait kernels", "wait_for_statistics slow_statistics"),
    ),
    *of(
        "jax_held_out.py",
        ("jax_small_steps", "launching computing", "simulate", ()),
        ("jax_scores_one_by_one", BETWEEN, "read_scores"),
    ),
    *of(
        "cupy_held_out.py",
        ("cupy_path_one_by_one", BETWEEN, "walk_path"),
        ("cupy_from_lists", "computing copies copy_call", "load_samples"),
    ),
    Kind("torch_held_out.py", "two_gzip_rest", "computing", "read_shard", second=("sleep", "rest_after_step")),
    Kind("torch_held_out.py", "two_environments_parser", "sleep", "slow_physics",
         second=("computing", "parse_table parse_value")),
    *of("torch_held_out.py", "busy_log_behind", "busy_uneven_loader", "busy_late_loss", "busy_shallow_waits"),
]
