#pragma once
// What follows from a step's list of operations: cache, attention's shape, bytes and operations.

#include "instruments/micro/step.hpp"

namespace campaign::micro {

/// Does latent attention multiply with the compressed cache (decode, and always with the indexer), or expand it first?
[[nodiscard]] bool is_absorbed(const Model& model, const Request& request);

/// Fills attention, cache, parameters, bytes, flops and stages from the operations that are there.
void add_sums(const Model& model, Step& step);

/// Whether the integers of the sums and of the collectives will stay far from 64 bits' end. Asked before they are made: of
/// `step` only the request and the token counts are looked at.
[[nodiscard]] bool within_bounds(const Model& model, const Step& step);

}   // namespace campaign::micro
