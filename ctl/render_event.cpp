#include <cmath>
#include <cstdio>

#include "base/json.hpp"
#include "base/text.hpp"
#include "ctl/render.hpp"

namespace campaign::ctl {
namespace {

std::string text_at(const json::value& object, std::string_view key) {
    return ascii(string_at(object, key).value_or(""));
}

/// "48.2" without needless digits.
std::string number_text(double value) {
    char text[40];
    std::snprintf(text, sizeof text, value >= 100 ? "%.0f" : "%.2f", value);
    return text;
}

struct Words {
    char sign = ' ';
    Tone tone = Tone::plain;
    std::string text;
};

std::string with_detail(std::string text, const json::value& data) {
    const std::string detail = text_at(data, "detail");
    if (!detail.empty()) text += ": " + detail;
    return text;
}

Words step_words(const json::value& data) {
    const std::string state = text_at(data, "state");
    Words words;
    words.text = with_detail(text_at(data, "label") + " " + text_at(data, "title"), data);
    if (state == "intent") words.sign = '>', words.tone = Tone::runs;
    if (state == "done") words.sign = '=', words.tone = Tone::fine;
    if (state == "failed") words.sign = 'x', words.tone = Tone::failed;
    if (state == "in_doubt") words.sign = '!', words.tone = Tone::you;
    return words;
}

Words campaign_words(const json::value& data) {
    const std::string state = text_at(data, "state");
    Words words;
    words.text = with_detail("campaign " + (state == "in_doubt" ? "in doubt" : state), data);
    if (state == "done") return {'=', Tone::fine, words.text};
    if (state == "failed") return {'x', Tone::failed, words.text};
    if (state == "cancelled") return {'~', Tone::by_plan, words.text};
    if (state == "waiting" || state == "in_doubt") return {'!', Tone::you, words.text};
    return {'>', Tone::runs, words.text};
}

Words production_words(const json::value& data) {
    const Standing is = production_standing(data, false);
    return {is.sign, is.tone,
            with_detail("production " + text_at(data, "host") + " " + unit_text(data) + " " + is.word, data)};
}

Words phase_words(const json::value& data) {
    const std::string state = text_at(data, "state");
    const std::string method = text_at(data, "method");
    Words words{
        ' ', Tone::plain,
        with_detail("phase " + text_at(data, "subject") + " " + state + (method.empty() ? "" : " (" + method + ")"), data)};
    if (state == "running") words.sign = '>';
    if (state == "queued")
        words.text += words.text.find(':') == std::string::npos ? ": its restart is allowed and comes next" : "";
    if (state == "done") words.sign = '=';
    if (state == "pivoted" || state == "skipped") words.sign = '~';
    if (state == "deferred") words.sign = '!';
    if (state == "failed") words.sign = 'x';
    return words;
}

/// The form that scripts and logs get: "loading shard=34/56 pct=61 eta=23:03".
Words wait_words(const json::value& event, const json::value& data, WallTime at) {
    Words words{'>', Tone::runs, ""};
    if (text_at(data, "state") == "over") {
        words.text = "wait over: " + text_at(data, "for");
        return words;
    }
    std::string what = text_at(data, "for");
    words.text = what == "model ready" ? "loading" : "waits for " + what;
    if (const std::string phase = text_at(data, "phase"); !phase.empty()) words.text += " phase=" + phase;
    const json::value* shards = member(data, "shards");
    if (shards != nullptr && shards->is_array() && shards->get_array().size() == 2)
        words.text += " shard=" + json::serialize(shards->get_array()[0]) + "/" + json::serialize(shards->get_array()[1]);
    if (const auto percent = number_at(data, "percent")) words.text += " pct=" + std::to_string(std::lround(*percent));
    if (const auto elapsed = number_at(data, "elapsed_s"))
        words.text += " elapsed=" + std::to_string(std::lround(*elapsed)) + "s";
    const json::value* expected = member(data, "expected_s");
    const auto elapsed = number_at(data, "elapsed_s");
    if (expected != nullptr && expected->is_array() && expected->get_array().size() == 2 && elapsed) {
        const json::value& usual = expected->get_array()[0];
        const json::value& slow = expected->get_array()[1];
        if (usual.is_number() && slow.is_number()) {
            const double left = usual.to_number<double>() - *elapsed;
            if (left > 0) {
                words.text +=
                    " eta=" +
                    clock_text(
                        at + std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::duration<double>(left)), at);
            } else if (*elapsed > slow.to_number<double>()) {
                words.text += " late=" + std::to_string(std::lround(*elapsed - slow.to_number<double>())) + "s";
            }
        }
    }
    static_cast<void>(event);
    return words;
}

Words level_words(const json::value& data) {
    Words words{'=', Tone::fine, "level c=" + std::to_string(int_at(data, "concurrency").value_or(0))};
    if (text_at(data, "state") == "running") words.sign = '>', words.tone = Tone::runs;
    if (const auto rate = number_at(data, "output_throughput")) words.text += " " + number_text(*rate) + " tok/s";
    if (const auto ttft = number_at(data, "ttft_p50_ms")) words.text += ", TTFT p50 " + number_text(*ttft) + " ms";
    if (const auto tpot = number_at(data, "tpot_p50_ms")) words.text += ", TPOT p50 " + number_text(*tpot) + " ms";
    return words;
}

Words words_of(const json::value& event, const std::string& kind, const json::value& data, WallTime at) {
    if (kind == "step") return step_words(data);
    if (kind == "campaign") return campaign_words(data);
    if (kind == "phase") return phase_words(data);
    if (kind == "production") return production_words(data);
    if (kind == "wait") return wait_words(event, data, at);
    if (kind == "level") return level_words(data);
    if (kind == "decision") {
        const std::string chosen = text_at(data, "chosen");
        return {'=', Tone::fine,
                with_detail("decided " + text_at(data, "subject") + " " + (chosen.empty() ? "nothing that may run" : chosen),
                            data)};
    }
    if (kind == "approval") {
        if (text_at(data, "state") == "expired")
            return {'!', Tone::you,
                    "approval of " + text_at(data, "subject") + " " + text_at(data, "candidate") + " expired"};
        return {'=', Tone::fine,
                text_at(data, "subject") + " " + text_at(data, "candidate") + " approved by " + text_at(data, "by")};
    }
    if (kind == "artifact") {
        const auto size = static_cast<std::uint64_t>(std::max<std::int64_t>(0, int_at(data, "size").value_or(0)));
        return {'=', Tone::fine,
                "kept " + text_at(data, "kind") + " " + text_at(data, "subject") + " " + format_bytes(size) + " sha256 " +
                    text_at(data, "sha256").substr(0, 8)};
    }
    if (kind == "undo") {
        const std::string state = text_at(data, "state");
        return {state == "failed" ? 'x'
                : state == "done" ? '='
                                  : '~',
                Tone::plain,
                with_detail("undo " + text_at(data, "subject") + " " + (state == "pending" ? "on record" : state), data)};
    }
    if (kind == "need") {
        if (text_at(data, "state") == "closed") return {'=', Tone::fine, "no longer needs you: " + text_at(data, "subject")};
        const std::string command = text_at(data, "command");
        return {'!', Tone::you, "NEEDS YOU: " + text_at(data, "what") + (command.empty() ? "" : "   " + command)};
    }
    if (kind == "note") return {' ', Tone::plain, text_at(data, "text")};
    return {' ', Tone::plain, kind};
}

}   // namespace

std::string render_event(const json::value& event, const Style& style) {
    if (const auto seq = int_at(event, "resync"))
        return "-- this reader fell behind; events up to " + std::to_string(*seq) + " were left out";
    const json::value* data = member(event, "data");
    const WallTime at = time_at(event, "at").value_or(WallTime{});
    const std::string kind = text_at(event, "kind");
    static const json::value nothing = json::object{};
    const Words words = words_of(event, kind, data == nullptr ? nothing : *data, at);
    return format_clock(at) + " " + paint(style, words.tone, std::string(1, words.sign)) + " " + words.text;
}

}   // namespace campaign::ctl
