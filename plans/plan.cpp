#include "plans/plan.hpp"

namespace campaign::plans {

std::string_view to_string(ServerKind kind) {
    switch (kind) {
        case ServerKind::automatic: return "auto";
        case ServerKind::vllm: return "vllm";
        case ServerKind::sglang: return "sglang";
        case ServerKind::llamacpp: return "llamacpp";
        case ServerKind::trtllm: return "trtllm";
        case ServerKind::generic: return "generic";
    }
    return "auto";
}

std::string_view to_string(Restart restart) {
    switch (restart) {
        case Restart::never: return "never";
        case Restart::ask: return "ask";
        case Restart::window: return "window";
        case Restart::allow: return "allow";
    }
    return "never";
}

std::string_view to_string(Measure measure) {
    switch (measure) {
        case Measure::warm_up: return "warm-up";
        case Measure::throughput: return "throughput";
        case Measure::decode_step: return "decode-step";
    }
    return "throughput";
}

std::string_view to_string(MethodKind method) {
    switch (method) {
        case MethodKind::macro: return "macro";
        case MethodKind::torch_profile: return "torch-profile";
        case MethodKind::nsys: return "nsys";
    }
    return "macro";
}

std::string_view to_string(Traces traces) {
    switch (traces) {
        case Traces::fetch: return "fetch";
        case Traces::excerpt: return "excerpt";
        case Traces::leave: return "leave";
    }
    return "fetch";
}

}   // namespace campaign::plans
