// What the flags leave open about a completion, settled for one run.
#pragma once

#include "apps/options.h"
#include "core/hparams.h"

namespace minfer {

// options.generation with the seed in use, drawn where --seed gives none and logged where it matters, and
// with the context of a chat, which is chat_context() unless -c says otherwise. Warns of a context that
// is longer than the trained one.
GenerateOptions generation_options(const Options& options, const HParams& hparams);

// The context of a chat where -c gives none: the trained one, at most 8192 tokens.
int32_t chat_context(const HParams& hparams);

// --seed, or a drawn one; logged.
uint64_t seed_in_use(const Options& options);

}  // namespace minfer
