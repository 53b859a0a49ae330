#pragma once
// The load generator: closed loops of streaming requests against an OpenAI-compatible server.

#include <atomic>
#include <boost/json.hpp>
#include <functional>
#include <vector>

#include "instruments/load/record.hpp"
#include "instruments/load/spec.hpp"

namespace campaign::load {

/// Called with {"event": "level_begin" | "progress" | "level_end", ...}: at both ends of a level and every second within.
using Progress = std::function<void(const json::object&)>;
/// Called with each measured request as it ends; texts are kept only then. Warm-up requests are not shown.
using OnRecord = std::function<void(const RequestRecord&)>;
/// Set from a signal handler or another thread: the run ends within some 10 ms with what it has.
using StopFlag = std::atomic<bool>;

/// Runs every level in this thread and returns campaign.load/1. What went wrong is in it: "complete" false and "error".
/// Raises the process's own limit of open files to the hard one.
[[nodiscard]] json::object run(const Spec& spec, const Progress& progress, const StopFlag& stop,
                               const OnRecord& on_record = {});

/// `count` requests one after the other over one kept connection, with their texts: what checks and replays use.
[[nodiscard]] Result<std::vector<RequestRecord>> measure_each(const Spec& spec, std::uint32_t count);
[[nodiscard]] Result<RequestRecord> measure_one(const Spec& spec);

}   // namespace campaign::load
