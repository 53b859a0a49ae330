#pragma once
// A step: the only thing that touches the world. A value that can be printed, hashed, compared and simulated.

#include <boost/json.hpp>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "storage/journal.hpp"

namespace campaign::engine {

class Scope;
using storage::Effect;

/// What became of a step. `in_doubt`: it may have happened or not, and nothing here says which.
struct Outcome {
    enum class Is { done, failed, in_doubt };
    Is is = Is::failed;
    json::object value;     ///< facts that later steps and the report use
    std::string evidence;   ///< one line for people
    Error error;            ///< of failed and in_doubt

    [[nodiscard]] explicit operator bool() const { return is == Is::done; }

    [[nodiscard]] static Outcome done(json::object facts, std::string seen);
    /// failed; or in_doubt when that is the error's kind.
    [[nodiscard]] static Outcome from(Error error);
};

[[nodiscard]] json::object to_json(const Outcome& outcome);
[[nodiscard]] Outcome outcome_from(const storage::StepRow& row);

/// What looking at the target says about an intent without outcome.
struct Confirmation {
    enum class Is { done, not_done, cannot_tell };
    Is is = Is::cannot_tell;
    json::object value;     ///< the outcome's facts when done
    std::string evidence;   ///< for `cannot_tell`: what was seen, for both readings
};

/// How a change is taken back: data that a generic executor carries out, with or without the plan.
struct Undo {
    std::string kind;
    json::object data;
};

class Step {
public:
    virtual ~Step() = default;
    [[nodiscard]] virtual std::string name() const = 0;    ///< "restart-unit": part of the path
    [[nodiscard]] virtual std::string title() const = 0;   ///< "restart vllm-k25.service on gpu07"
    [[nodiscard]] virtual Effect effect() const = 0;
    [[nodiscard]] virtual json::object input() const = 0;   ///< everything that decides what it does; its hash is on record
    [[nodiscard]] virtual std::string host() const { return {}; }
    [[nodiscard]] virtual std::string command() const { return {}; }

    /// Evidence to have on record before acting (InvocationID, log position). Reads only.
    virtual Async<Result<json::object>> before(Scope& scope);
    [[nodiscard]] virtual std::vector<Undo> undos() const { return {}; }
    virtual Async<Outcome> act(Scope& scope, const json::object& before) = 0;
    /// What the outcome would look like, for a rehearsal (plan explain): enough for the method to go on, and no more.
    [[nodiscard]] virtual json::object example() const { return {}; }
    /// For transitions: was the intent carried out? Reads only.
    virtual Async<Confirmation> confirm(Scope& scope, const json::object& before);
};

}   // namespace campaign::engine
