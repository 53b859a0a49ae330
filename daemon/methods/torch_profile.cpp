// A decode window under the torch profiler: kernels by name for every rank.

#include <algorithm>

#include "base/text.hpp"
#include "daemon/methods/jobs.hpp"
#include "daemon/methods/method.hpp"
#include "daemon/methods/profile_steps.hpp"
#include "daemon/methods/traces.hpp"

namespace campaign::methods {
namespace {

/// Load that keeps the server decoding at the wanted concurrency: each stream yields one step a token.
json::object capture_load(const plans::Capture& capture, const std::string& model, int tokens) {
    json::object spec;
    spec["route"] = "completions";
    spec["model"] = model;
    spec["concurrency"] = json::array(1, json::value(capture.concurrency));
    spec["requests"] = capture.concurrency;
    spec["input_tokens"] = capture.input_tokens;
    spec["output_tokens"] = tokens;
    spec["ignore_eos"] = true;
    spec["seed"] = 1;
    spec["request_timeout_s"] = 1800;
    spec["warmup_requests"] = 0;
    return spec;
}

}   // namespace

Async<Result<PhaseResult>> torch_profile(Campaign& campaign, const plans::Phase& phase, const ServiceFacts& facts,
                                         const Session& session) {
    Track track{campaign, phase.name + "/torch-profile", phase.name};
    const plans::Capture& capture = phase.capture;
    const bool in_production = session.mode == engine::Mode::production;

    // Graphs, caches and clocks settle before the window opens.
    LoadRequest warm;
    warm.label = "capture-warm-up";
    warm.spec = capture_load(capture, facts.model, std::max(capture.warmup_steps, 8));
    warm.limit = phase.time_limit;
    const Result<LoadDone> warmed = co_await run_load(track, facts.service, std::move(warm));
    if (!warmed) co_return warmed.error();

    ListTraces list{campaign, facts.service, session.trace_dir};
    const Outcome listed = co_await track.perform(list);
    if (!listed) co_return listed.error;
    json::array already;
    if (const json::value* files = listed.value.if_contains("files"); files != nullptr && files->is_array())
        already = files->get_array();

    StartProfile start{campaign, facts.service, facts.server_kind, tag_of(campaign, phase.name + "/start"), in_production};
    const Outcome started = co_await track.perform(start);
    if (!started) co_return started.error;

    LoadRequest load;
    load.label = "capture-load";
    load.spec = capture_load(capture, facts.model, std::max(capture.output_tokens, capture.steps + 2));
    load.limit = phase.time_limit;
    const Result<LoadDone> loaded = co_await run_load(track, facts.service, std::move(load));

    // Sent once, also when the load failed: a running profile slows the server down and fills its memory.
    ProfileRequest stop{campaign,          facts.service, facts.server_kind, false, tag_of(campaign, phase.name + "/stop"),
                        capture.stop_limit};
    stop.meant_for(server_start(started.value));
    const Outcome stopped = co_await track.perform(stop);
    const bool lost = bool_at(stopped.value, "lost").value_or(false);
    if (in_production && (stopped || lost)) co_await close_undos(campaign, "profile-ended", stopped.evidence);
    if (!stopped) co_return stopped.error;
    if (!loaded) co_return loaded.error();

    AwaitTraces await{campaign, facts.service,    facts.server_kind,       session.trace_dir,
                      already,  facts.world_size, std::chrono::minutes{10}};
    const Outcome whole = co_await track.perform(await);
    if (!whole) co_return whole.error;

    std::vector<TraceFile> files = trace_files(whole);
    Result<Analysed> analysed = co_await gather(track, facts.service, std::move(files), phase.traces);
    if (!analysed) co_return analysed.error();

    for (const json::value& trace : analysed->traces) {
        if (bool_at(trace, "complete").value_or(true)) continue;
        co_return Error{ErrorKind::failed, "the traces are not whole",
                        string_at(trace, "name").value_or("a trace") +
                            " is cut off: the server ended, or its disk was full, while it wrote",
                        stopped.evidence, "campaignctl artifacts " + campaign.row.name + " has what came"};
    }
    PhaseResult result;
    result.summary["analysis_sha256"] = analysed->sha256;
    result.summary["traces"] = analysed->traces;
    if (const json::value* missing = whole.value.if_contains("missing"); missing != nullptr)
        result.summary["missing_ranks"] = *missing;
    result.summary["load_sha256"] = loaded->sha256;
    const std::optional<std::string> answer = string_at(analysed->analysis, "answer");
    result.summary["answer"] = answer ? json::value(*answer) : json::value(nullptr);
    result.text = answer ? printable(*answer, 300)
                         : "the traces cannot answer: " +
                               printable(string_at(analysed->analysis, "cannot_answer").value_or("no reason given"), 300);
    co_return result;
}

}   // namespace campaign::methods
