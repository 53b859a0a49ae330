#include "daemon/methods/await_ready.hpp"

#include <algorithm>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/multiple_exceptions.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/text.hpp"
#include "daemon/engine/pacing.hpp"
#include "daemon/engine/redact.hpp"
#include "daemon/methods/restore.hpp"
#include "instruments/startup/startup.hpp"

namespace campaign::methods {
namespace asio = boost::asio;
using namespace std::chrono_literals;

/// One wait: the log's follower and the watch share it. Everything runs on the loop.
class ReadyWatch {
public:
    ReadyWatch(AwaitReady& step, Scope& scope, asio::any_io_executor executor)
        : step_{step}, scope_{scope}, link_{step.link()}, woken_{executor, asio::steady_timer::time_point::max()} {}

    Async<Outcome> run() {
        using namespace asio::experimental::awaitable_operators;
        co_await load_history();
        std::variant<Watched, std::monostate> ended;
        try {
            ended = co_await (watched() || follow());
        } catch (const asio::multiple_exceptions& both) {   // a cancel ends both, and each says so
            std::rethrow_exception(both.first_exception());
        }
        if (ended.index() == 0 && std::get<0>(ended).thrown) std::rethrow_exception(std::get<0>(ended).thrown);
        Outcome outcome = ended.index() == 0 ? std::get<0>(std::move(ended)).outcome
                                             : Outcome::from(Error{ErrorKind::bug, "the log's follower ended", "", "", ""});
        co_await close(outcome);
        co_return outcome;
    }

private:
    struct Watched {
        Outcome outcome;
        std::exception_ptr thrown;
    };

    /// The watch, whose end is an end however it comes. `||` cancels and joins the other side only when one *returns*: after
    /// a throw it would wait for the follower, which never ends by itself.
    Async<Watched> watched() {
        Watched end;
        try {
            end.outcome = co_await watch();
        } catch (...) {
            end.thrown = std::current_exception();
        }
        co_return end;
    }

    [[nodiscard]] Clock& clock() const { return scope_.clock(); }
    [[nodiscard]] Seconds elapsed() const { return Seconds{clock().wall() - engine::wall_time(step_.start_.at)}; }

    Async<void> load_history() {
        const Result<std::vector<storage::LoadRow>> rows =
            scope_.world().journal.reader().loads(step_.host(), step_.service_);
        if (rows) {
            for (const storage::LoadRow& row : *rows) history_.push_back({Seconds{row.seconds}, row.finished});
        }
        if (history_.empty() && link_.service.load_time) history_.push_back({*link_.service.load_time, true});
        estimate_ = engine::estimate(history_);
        co_return;
    }

    /// Never returns by itself: the log goes on until the watch has its answer. A lost line is taken up after the last
    /// cursor.
    Async<std::monostate> follow() {
        std::string cursor = step_.start_.cursor;
        for (int failures = 0;;) {
            host::OnLog on_log = [this, &cursor](const host::LogLine& line) {
                cursor = line.cursor.empty() ? cursor : line.cursor;
                take(line);
                return true;
            };
            const Result<bool> ended = co_await link_.manager->follow_log(step_.unit(), cursor, std::move(on_log));
            if (!ended && ended.error().kind == ErrorKind::not_found) {
                gap_ = true;   // the position is gone: from now on, and the record says so
                const Result<std::string> now = co_await link_.manager->log_cursor(step_.unit());
                if (now) cursor = *now;
            }
            log_works_ = false;
            failures = std::min(failures + 1, 6);
            co_await clock().sleep_for(250ms * (1 << failures));
        }
    }

    void take(const host::LogLine& line) {
        log_works_ = true;
        ++lines_;
        last_line_at_ = clock().mono();
        if (log_.size() < (std::size_t{8} << 20)) {
            log_ += line.text;
            log_ += '\n';
        } else {
            ++dropped_;
        }
        const std::uint64_t before = reader_.activity();
        const startup::Outcome was = reader_.progress().outcome;
        reader_.feed(line.text);
        reader_.feed("\n");
        if (reader_.activity() != before) progressed_at_ = clock().mono();
        const startup::Outcome is = reader_.progress().outcome;
        if (is == startup::Outcome::failed) failure_ = reader_.progress();   // kept: systemd may start the next run at once
        if (is == startup::Outcome::ready && ready_logged_us_ == 0) ready_logged_us_ = line.realtime_us;
        if (is != was || line.from_manager) {
            urgent_ = true;
            woken_.cancel();
        }
    }

    Async<void> wait_until(MonoTime when) {
        if (urgent_) co_return;
        woken_.expires_at(when);
        boost::system::error_code ignored;
        co_await woken_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
        const auto state = co_await asio::this_coro::cancellation_state;
        if (state.cancelled() != asio::cancellation_type::none)
            throw boost::system::system_error{asio::error::operation_aborted};
    }

    Async<Outcome> watch() {
        const engine::ProbeSchedule schedule{history_};
        progressed_at_ = clock().mono();
        const MonoTime began = clock().mono();
        MonoTime next_probe = began;   // after a crash of ours it may be ready long since
        MonoTime next_look = began;
        MonoTime next_report = began;
        while (true) {
            const MonoTime now = clock().mono();
            const startup::Progress& log = reader_.progress();
            const bool ready_said = log.outcome == startup::Outcome::ready;
            const bool failure_said = log.outcome == startup::Outcome::failed;
            const bool urgent = std::exchange(urgent_, false);

            if (urgent || failure_said || ready_said || now >= next_look) {
                next_look = now + (failure_said || ready_said ? 500ms : 5000ms);
                ++looks_;
                if (std::optional<Outcome> dead = co_await judge_state()) co_return *dead;
                if (failure_said) {   // the process may need a moment to die; the log's word stands after that
                    if (!failure_seen_) failure_seen_ = clock().mono();
                    if (clock().mono() - *failure_seen_ > 20s) co_return failed_by_log("the log says so");
                }
            }
            if (ready_said || now >= next_probe) {
                ++probes_;
                if (std::optional<Outcome> ready = co_await probe()) co_return *ready;
                const Seconds at = elapsed();
                next_probe = clock().mono() + std::chrono::duration_cast<MonoTime::duration>(
                                                  ready_said ? Seconds{0.2} : schedule.next_after(at) - at);
            }
            if (clock().mono() - progressed_at_ > scope_.campaign().plan.limits.stall) {
                co_return over("stalled", ErrorKind::timed_out,
                               "no sign of progress for " + format_span(scope_.campaign().plan.limits.stall), log.last_line);
            }
            if (elapsed() > scope_.campaign().plan.limits.load) {
                co_return over("stalled", ErrorKind::timed_out, "the load takes longer than limits.load allows",
                               log.last_line);
            }
            if (clock().mono() >= next_report) {
                next_report = clock().mono() + 1s;
                co_await report(next_probe, "waiting");
            }
            const MonoTime soonest = std::min({next_probe, next_look, next_report});
            co_await wait_until(soonest);
        }
    }

    /// What the unit's state decides: another start than ours, or a dead process. Nothing: go on.
    Async<std::optional<Outcome>> judge_state() {
        const Result<host::ServiceState> now = co_await link_.manager->look(step_.unit());
        if (!now) {
            state_text_ = now.error().what;   // the link may heal; limits end the wait
            co_return std::nullopt;
        }
        state_text_ = now->active + "/" + now->sub;
        if (!boot_id_.empty() && now->boot_id != boot_id_) {
            co_return over("failed", ErrorKind::conflict, step_.host() + " was rebooted while the model loaded",
                           "boot_id " + now->boot_id);
        }
        boot_id_ = now->boot_id;
        const bool other_start = !now->invocation.empty() && now->invocation != step_.start_.invocation;
        if (now->active == "failed" || (now->active == "inactive" && !now->job_pending)) {
            const std::string seen =
                "ActiveState=" + now->active + " Result=" + now->result +
                (now->exit_status ? " ExecMainStatus=" + std::to_string(*now->exit_status) : std::string{});
            co_return failed_by_log(seen);
        }
        if (other_start || now->sub == "auto-restart") {
            if (!failure_) co_await clock().sleep_for(1500ms);   // the state is faster than the log that has the cause
            co_return failed_by_log("the unit was started again by systemd: NRestarts=" + std::to_string(now->restarts));
        }
        co_return std::nullopt;
    }

    /// Ready only when the engine of our own invocation answers: health, model, one token.
    Async<std::optional<Outcome>> probe() {
        const Result<std::unique_ptr<servers::Server>> server = servers::make_server(step_.kind_, scope_.world().http);
        if (!server) co_return Outcome::from(server.error());
        const Result<servers::Endpoint> at = co_await endpoint(link_);
        if (!at) co_return std::nullopt;
        const Result<servers::Health> health = co_await (**server).health(*at);
        if (!health || *health != servers::Health::ready) co_return std::nullopt;
        const WallTime answered = clock().wall();
        const Result<std::vector<std::string>> models = co_await (**server).models(*at);
        if (!models || std::find(models->begin(), models->end(), step_.model_) == models->end()) {
            state_text_ = "healthy, but the model " + step_.model_ + " is not listed";
            co_return std::nullopt;
        }
        const Result<servers::Token> token = co_await (**server).one_token(*at, step_.model_);
        if (!token || !token->generated) {
            state_text_ = "healthy, but generates nothing";
            co_return std::nullopt;
        }
        const Result<host::ServiceState> now = co_await link_.manager->look(step_.unit());
        if (!now) co_return std::nullopt;
        if (now->invocation != step_.start_.invocation)
            co_return failed_by_log("another start answers: " + printable(now->invocation, 60));
        json::object facts;
        facts["seconds"] = elapsed().count();
        facts["healthy_at"] = format_time(answered);
        facts["healthy_us"] = engine::micros(answered);
        facts["ready_logged_us"] = static_cast<std::int64_t>(ready_logged_us_);
        facts["probes"] = probes_;
        facts["looks"] = looks_;
        facts["log_lines"] = lines_;
        facts["log_readable"] = lines_ > 0;
        facts["one_token_ms"] = token->took.count();
        std::string pace = std::to_string(probes_) + " probes";
        if (ready_logged_us_ != 0) {
            const auto behind = engine::micros(answered) - static_cast<std::int64_t>(ready_logged_us_);
            facts["behind_log_ms"] = behind / 1000;
            pace += ", proven healthy " + std::to_string(std::max<std::int64_t>(behind, 0) / 1000) +
                    " ms after the log's own word";
        }
        co_return Outcome::done(
            std::move(facts), "ready after " + format_span(std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed())) +
                                  ": active, healthy, model listed, one token; " + pace);
    }

    Outcome failed_by_log(const std::string& seen) {
        const startup::Progress& log = failure_ ? *failure_ : reader_.progress();
        std::string why = log.failure_kind.empty() ? "the log names no cause" : log.failure_kind;
        std::string evidence = log.failure_kind.empty() ? seen : seen + "; \"" + printable(log.evidence, 400) + "\"";
        return over("failed", ErrorKind::failed, why, evidence);
    }

    Outcome over(const std::string& how, ErrorKind kind, const std::string& why, const std::string& evidence) {
        verdict_ = how;
        const startup::Progress& log = failure_ ? *failure_ : reader_.progress();
        std::string what =
            step_.on_host() + (how == "stalled" ? " stalled while it loaded its model" : " did not become ready");
        if (log.phase != startup::Phase::none) what += ", in phase " + std::string{startup::to_string(log.phase)};
        Outcome outcome = Outcome::from(Error{kind, what, why, printable(evidence, 600),
                                              "campaignctl artifacts " + scope_.campaign().row.name + " has the log"});
        outcome.value["failure_kind"] = log.failure_kind;
        outcome.value["phase"] = startup::to_string(log.phase);
        outcome.value["seconds"] = elapsed().count();
        outcome.value["probes"] = probes_;
        return outcome;
    }

    Async<void> report(MonoTime next_probe, std::string state) {
        const startup::Progress& log = reader_.progress();
        json::object data;
        data["subject"] = step_.on_host();
        data["for"] = "model ready";
        data["phase"] =
            log.phase == startup::Phase::none ? json::value(nullptr) : json::value(startup::to_string(log.phase));
        data["percent"] = log.percent ? json::value(*log.percent) : json::value(nullptr);
        data["shards"] = log.shards_done && log.shards_total ? json::value(json::array{*log.shards_done, *log.shards_total})
                                                             : json::value(nullptr);
        data["elapsed_s"] = elapsed().count();
        data["began"] = format_time(engine::wall_time(step_.start_.at));
        data["expected_s"] = estimate_.loads > 0 ? json::value(json::array{estimate_.p50.count(), estimate_.p90.count()})
                                                 : json::value(nullptr);
        data["history"] = estimate_.loads;
        const auto in = std::chrono::duration_cast<std::chrono::microseconds>(next_probe - clock().mono());
        data["next_probe"] = format_time(clock().wall() + in);
        const auto stall_in = std::chrono::duration_cast<std::chrono::microseconds>(
            progressed_at_ + scope_.campaign().plan.limits.stall - clock().mono());
        data["gives_up"] = format_time(clock().wall() + stall_in);
        data["last_log_s"] = last_line_at_
                                 ? json::value(std::chrono::duration<double>(clock().mono() - *last_line_at_).count())
                                 : json::value(nullptr);
        data["line"] = printable(log.last_line, 200);
        data["unit"] = state_text_;
        data["state"] = std::move(state);
        const std::string fingerprint =
            std::string{startup::to_string(log.phase)} + std::to_string(log.percent.value_or(-1));
        const bool changed = fingerprint != reported_;
        if (!changed && clock().mono() < quiet_until_) co_return;   // a line a change, else one in ten seconds
        reported_ = fingerprint;
        quiet_until_ = clock().mono() + 10s;
        co_await scope_.event("wait", std::move(data));
    }

    /// What the wait leaves behind: the log as an artifact, the load in the history, the pacing on record.
    Async<void> close(Outcome& outcome) {
        reader_.finish();
        if (!log_.empty()) {
            json::object detail;
            detail["lines"] = lines_;
            detail["dropped"] = dropped_;
            detail["gap"] = gap_;
            std::string text = engine::redact(log_);
            const Result<std::string> kept = co_await scope_.keep("log", "load-" + step_.mode_ + ".log", std::move(text),
                                                                  step_.host() + ":" + step_.unit(), std::move(detail));
            if (kept) outcome.value["log_sha256"] = *kept;
        }
        storage::LoadRow row;
        row.campaign = scope_.campaign().row.id;
        row.host = step_.host();
        row.service = step_.service_;
        row.model = step_.model_;
        row.mode = step_.mode_;
        row.began = step_.start_.at;
        row.seconds = elapsed().count();
        row.finished = static_cast<bool>(outcome);
        row.outcome = outcome ? "ready" : verdict_;
        storage::Writer::Work work = [row](storage::Journal& journal) -> Result<void> {
            const auto added = journal.add_load(row);
            if (!added) return added.error();
            return {};
        };
        const Result<void> written = co_await scope_.world().journal.write(std::move(work));
        if (!written) throw engine::EngineStop{written.error()};
        reported_.clear();
        quiet_until_ = {};
        co_await report(clock().mono(), "over");
        if (outcome && step_.mode_ != "production") {
            co_await production(scope_.campaign(), step_.service_, "changed", "serves in " + step_.mode_ + " mode");
        }
    }

    AwaitReady& step_;
    Scope& scope_;
    ServiceLink& link_;
    asio::steady_timer woken_;
    startup::Reader reader_;
    std::vector<engine::PastLoad> history_;
    engine::LoadEstimate estimate_;
    std::string log_;
    std::string state_text_;
    std::string boot_id_;
    std::string reported_;
    std::string verdict_ = "failed";
    MonoTime progressed_at_{};
    MonoTime quiet_until_{};
    std::optional<MonoTime> last_line_at_;
    std::optional<MonoTime> failure_seen_;
    std::optional<startup::Progress> failure_;
    std::uint64_t ready_logged_us_ = 0;
    std::int64_t lines_ = 0;
    std::int64_t dropped_ = 0;
    int probes_ = 0;
    int looks_ = 0;
    bool urgent_ = false;
    bool gap_ = false;
    bool log_works_ = false;
};

Async<Outcome> AwaitReady::act(Scope& scope, const json::object&) {
    ReadyWatch watch{*this, scope, co_await asio::this_coro::executor};
    co_return co_await watch.run();
}

}   // namespace campaign::methods
