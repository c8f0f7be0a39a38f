/* SPDX-License-Identifier: MIT */
/* The lines of code that cases of a finding are of. Private to findings*.c. */
#ifndef CUSCOPE_REPORT_FINDINGS_FINDINGS_LINES_H
#define CUSCOPE_REPORT_FINDINGS_FINDINGS_LINES_H

#include "analysis/place.h"
#include "report/findings/findings_rules.h"

void finding_stack_add(struct finding_stacks *stacks, const struct finding_stack *one);

/* Makes the lines of a finding of the stacks of its cases. */
void finding_set_lines(struct finding *finding, const struct finding_cases *cases,
                       struct stack_places *places);

#endif
