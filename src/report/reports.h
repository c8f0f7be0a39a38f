/* SPDX-License-Identifier: MIT */
/* The reports' create functions, for the rows in reports.c. */
#ifndef CUSCOPE_REPORT_REPORTS_H
#define CUSCOPE_REPORT_REPORTS_H

#include "report/report.h"

struct consumer *sums_report_new(const struct report *report, const struct report_options *options);
struct consumer *api_trace_report_new(const struct report *report,
                                      const struct report_options *options);
struct consumer *gpu_trace_report_new(const struct report *report,
                                      const struct report_options *options);
struct consumer *kern_exec_sum_report_new(const struct report *report,
                                          const struct report_options *options);
struct consumer *kern_exec_trace_report_new(const struct report *report,
                                            const struct report_options *options);
struct consumer *summary_report_new(const struct report *report,
                                    const struct report_options *options);

/* The expert rules of Nsight Systems. */
struct consumer *cuda_memcpy_async_report_new(const struct report *report,
                                              const struct report_options *options);
struct consumer *cuda_memcpy_sync_report_new(const struct report *report,
                                             const struct report_options *options);
struct consumer *cuda_memset_sync_report_new(const struct report *report,
                                             const struct report_options *options);
struct consumer *cuda_api_sync_report_new(const struct report *report,
                                          const struct report_options *options);
struct consumer *gpu_gaps_report_new(const struct report *report,
                                     const struct report_options *options);
struct consumer *gpu_time_util_report_new(const struct report *report,
                                          const struct report_options *options);

/* Ours: what Nsight Systems has no report for. */
struct consumer *overview_report_new(const struct report *report,
                                     const struct report_options *options);
struct consumer *errors_report_new(const struct report *report,
                                   const struct report_options *options);
struct consumer *streams_report_new(const struct report *report,
                                    const struct report_options *options);
struct consumer *threads_report_new(const struct report *report,
                                    const struct report_options *options);
struct consumer *processes_report_new(const struct report *report,
                                      const struct report_options *options);
struct consumer *memory_report_new(const struct report *report,
                                   const struct report_options *options);
struct consumer *launches_report_new(const struct report *report,
                                     const struct report_options *options);
struct consumer *gaps_report_new(const struct report *report, const struct report_options *options);
struct consumer *slowest_report_new(const struct report *report,
                                    const struct report_options *options);
struct consumer *findings_report_new(const struct report *report,
                                     const struct report_options *options);
struct consumer *overlap_report_new(const struct report *report,
                                    const struct report_options *options);
struct consumer *copies_report_new(const struct report *report,
                                   const struct report_options *options);
struct consumer *launch_stats_report_new(const struct report *report,
                                         const struct report_options *options);

struct consumer *nvtx_sum_report_new(const struct report *report,
                                     const struct report_options *options);
struct consumer *nvtx_pushpop_trace_report_new(const struct report *report,
                                               const struct report_options *options);

struct consumer *nvtx_kern_sum_report_new(const struct report *report,
                                          const struct report_options *options);
struct consumer *nvtx_gpu_proj_trace_report_new(const struct report *report,
                                                const struct report_options *options);
struct consumer *nvtx_gpu_proj_sum_report_new(const struct report *report,
                                              const struct report_options *options);

#endif
