/* SPDX-License-Identifier: MIT */
/* What an account consists of besides its steps: start, warm-up, evaluations, checkpoints, end. */
#pragma once

#include "account/answer.h"

/* In answer->phases, of all accounts; with answer->steps. */
void phases_make(struct answer *answer);

const char *phase_kind_name(enum phase_kind kind); /* "warm_up": the word for it in outputs */
