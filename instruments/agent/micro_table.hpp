#pragma once
// The step and the budget of docs/latency-budget.md as people read them, 80 columns wide.

#include <string>

#include "instruments/micro/reconcile.hpp"
#include "instruments/micro/step.hpp"

namespace campaign::agent {

[[nodiscard]] std::string shapes_table(const micro::Step& step, const std::string& name,
                                       const std::optional<micro::Gpu>& gpu);
[[nodiscard]] std::string budget_table(const micro::Budget& budget);

}   // namespace campaign::agent
