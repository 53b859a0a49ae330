// Any bytes as a config and as a budget's input: an answer or a refusal, and a budget that adds up.
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "instruments/micro/reconcile.hpp"
#include "instruments/micro/step.hpp"

namespace {

void shapes(const campaign::json::value& document, std::int64_t tensor) {
    using namespace campaign::micro;
    const campaign::Result<Model> model = read_model(document);
    if (!model) return;
    Request request;
    request.parallel.tensor = tensor;
    request.batch = 64;
    for (const bool expert : {false, true}) {
        request.parallel.expert = expert;
        const campaign::Result<Step> step = derive(*model, request);
        if (!step) continue;
        if (step->held_bytes < 0 || step->linear_bytes < 0 || step->cache.read_bytes < 0) std::abort();
        if (static_cast<double>(step->held_bytes) * (1 + 1e-9) < step->read_bytes()) std::abort();
        (void)campaign::json::serialize(to_json(*step, "fuzz", std::nullopt));
    }
}

void budget(const campaign::json::value& document) {
    using namespace campaign::micro;
    const campaign::Result<BudgetInput> input = read_budget_input(document);
    if (!input) return;
    const Budget budget = reconcile(*input);
    const double whole = budget.sum_us[1] + budget.residual_us[1];
    const double scale = std::abs(budget.step_us) + std::abs(budget.sum_us[1]);
    if (std::abs(whole - budget.step_us) > 1e-9 * scale) std::abort();
}

}   // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view text{reinterpret_cast<const char*>(data) + 1, size - 1};
    const campaign::Result<campaign::json::value> document = campaign::parse_json(text, "fuzz");
    if (!document) return 0;
    shapes(*document, 1 + data[0] % 8);
    budget(*document);
    return 0;
}
