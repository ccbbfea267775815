// Profiles of the CUDA engine.
#pragma once

#include <span>

#include "core/engine.h"
#include "core/model_cost.h"
#include "core/profile.h"

namespace minfer::cu {

// Of a prompt, from position 0; the median wall clock of some runs, op times averaged over some others.
// `engine` is one that make_cuda_engine made, with KV for the ids; any other throws Error(kUsage).
Profile profile_prefill(Engine& engine, const ModelCost& cost, std::span<const TokenId> ids);

// Of one decode step behind ids (with KV for kProfiledSteps more): means over so many steps.
inline constexpr int kProfiledSteps = 16;
Profile profile_decode(Engine& engine, const ModelCost& cost, std::span<const TokenId> ids);

}  // namespace minfer::cu
