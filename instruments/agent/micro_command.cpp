#include <charconv>
#include <filesystem>
#include <iostream>
#include <map>
#include <ostream>

#include "base/files.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "instruments/agent/commands.hpp"
#include "instruments/agent/each_command.hpp"
#include "instruments/agent/micro_table.hpp"
#include "instruments/micro/gpus.hpp"
#include "instruments/micro/reconcile.hpp"
#include "instruments/micro/step.hpp"

namespace campaign::agent {
namespace {

constexpr std::string_view help =
    "micro shapes [OPTION...] CONFIG   the operations of a step, from config.json\n"
    "  CONFIG           a folder with config.json (and hf_quant_config.json), or the file\n"
    "  --tp N --dp N --pp N --ep       how the model is spread; --ep: whole experts\n"
    "  --batch B        sequences of a data-parallel rank (1)\n"
    "  --context S      tokens that each has in the cache (1024)\n"
    "  --draft K        speculative tokens a sequence (0)\n"
    "  --phase prefill --tokens T      a chunk of T tokens instead of a decode step\n"
    "  --kv-bytes N     a cache element's; by default what the config says, else 2\n"
    "  --gpu NAME       its floor, the best possible TPOT, and whether the weights fit\n"
    "  --json           as docs/latency-budget.md lists it\n"
    "micro reconcile [--json] FILE     a step's budget; FILE as docs/latency-budget.md, or -\n"
    "exit status: 0 done, 1 refused or unreadable, 2 wrong usage\n";

struct Shapes {
    micro::Request request;
    std::optional<micro::Gpu> gpu;
    bool as_json = false;
    std::string config;
};

int misused(std::ostream& err, const std::string& why) {
    err << "micro: " << why << '\n' << help;
    return usage;
}

std::optional<std::int64_t> whole_number(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

std::string known_gpus() {
    std::string text;
    for (const micro::Gpu& gpu : micro::gpus()) text += (text.empty() ? "" : ", ") + std::string{gpu.name};
    return text;
}

/// nullopt and `why`: the words make no sense.
std::optional<Shapes> parse_shapes(Words words, std::string& why) {
    Shapes out;
    bool tokens = false;
    micro::Request& request = out.request;
    std::int64_t kv_bytes = 0;
    const std::map<std::string, std::int64_t*, std::less<>> numbers{
        {"--tp", &request.parallel.tensor}, {"--dp", &request.parallel.data}, {"--pp", &request.parallel.pipeline},
        {"--batch", &request.batch},        {"--context", &request.context},  {"--draft", &request.draft},
        {"--tokens", &request.tokens},      {"--kv-bytes", &kv_bytes}};
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string& word = words[i];
        const auto number = numbers.find(word);
        const bool takes_value = number != numbers.end() || word == "--phase" || word == "--gpu";
        if (takes_value && i + 1 == words.size()) {
            why = word + " needs a value";
            return std::nullopt;
        }
        if (number != numbers.end()) {
            const std::optional<std::int64_t> value = whole_number(words[++i]);
            if (!value) {
                why = word + " needs a whole number, not '" + printable(words[i], 40) + "'";
                return std::nullopt;
            }
            *number->second = *value;
            tokens = tokens || word == "--tokens";
            if (word == "--kv-bytes") request.kv_bytes = kv_bytes;
        } else if (word == "--phase") {
            const std::string& phase = words[++i];
            if (phase != "decode" && phase != "prefill") {
                why = "--phase is decode or prefill, not '" + printable(phase, 40) + "'";
                return std::nullopt;
            }
            request.phase = phase == "prefill" ? micro::Phase::prefill : micro::Phase::decode;
        } else if (word == "--gpu") {
            out.gpu = micro::find_gpu(words[++i]);
            if (!out.gpu) {
                why = "no GPU is known as '" + printable(words[i], 60) + "'; known: " + known_gpus();
                return std::nullopt;
            }
        } else if (word == "--ep") {
            request.parallel.expert = true;
        } else if (word == "--json") {
            out.as_json = true;
        } else if (word.size() > 1 && word.starts_with('-')) {
            why = "shapes knows no option " + printable(word, 60);
            return std::nullopt;
        } else if (!out.config.empty()) {
            why = "shapes reads one config";
            return std::nullopt;
        } else {
            out.config = word;
        }
    }
    const bool prefill = request.phase == micro::Phase::prefill;
    if (out.config.empty())
        why = "shapes needs the folder of a config.json";
    else if (prefill != tokens)
        why = prefill ? "--phase prefill needs --tokens" : "--tokens goes with --phase prefill";
    return why.empty() ? std::optional{std::move(out)} : std::nullopt;
}

std::string name_of(const std::string& config) {
    std::filesystem::path path{config};
    if (path.filename().empty()) path = path.parent_path();   // "folder/"
    if (path.filename() == "config.json" && path.has_parent_path()) path = path.parent_path();
    return path.filename().empty() || path == "." ? config : path.filename().string();
}

int shapes(Words words, std::ostream& out, std::ostream& err) {
    std::string why;
    const std::optional<Shapes> asked = parse_shapes(words, why);
    if (!asked) return misused(err, why);
    const std::string name = name_of(asked->config);
    const Result<micro::Model> model = micro::load_model(asked->config);
    const Result<micro::Step> step = model ? micro::derive(*model, asked->request) : Result<micro::Step>{model.error()};
    if (!step) {
        const Error& error = step.error();
        const bool refused = error.kind == ErrorKind::refused;
        if (asked->as_json)
            out << pretty(micro::refusal_json(error, name)) << '\n';
        else
            err << printable(name, 200) << (refused ? " cannot be run so: " : " is not modelled: ") << error.what << '\n';
        return failed;
    }
    if (asked->as_json)
        out << pretty(micro::to_json(*step, name, asked->gpu)) << '\n';
    else
        out << shapes_table(*step, name, asked->gpu);
    return as_asked;
}

Result<std::string> read_input(const std::string& file) {
    constexpr std::size_t most = std::size_t{16} << 20U;
    if (file != "-") return read_text(file, most);
    std::string text;
    char c = 0;
    while (text.size() <= most && std::cin.get(c)) text += c;
    if (text.size() > most)
        return Error{.kind = ErrorKind::invalid,
                     .what = "standard input is longer than 16 MiB",
                     .why = {},
                     .evidence = {},
                     .next = {}};
    return text;
}

int reconcile(Words words, std::ostream& out, std::ostream& err) {
    bool as_json = false;
    std::string file;
    for (const std::string& word : words) {
        if (word == "--json")
            as_json = true;
        else if (word.size() > 1 && word.starts_with('-'))
            return misused(err, "reconcile knows no option " + printable(word, 60));
        else if (!file.empty())
            return misused(err, "reconcile reads one file");
        else
            file = word;
    }
    if (file.empty()) return misused(err, "reconcile needs a file, or - for standard input");
    const auto fail = [&](const Error& error) {
        err << describe(error) << '\n';
        return failed;
    };
    const Result<std::string> text = read_input(file);
    if (!text) return fail(text.error());
    const Result<json::value> document = parse_json(*text, printable(file, 200));
    if (!document) return fail(document.error());
    const Result<micro::BudgetInput> input = micro::read_budget_input(*document);
    if (!input) return fail(input.error());
    const micro::Budget budget = micro::reconcile(*input);
    out << (as_json ? pretty(micro::to_json(budget)) + "\n" : budget_table(budget));
    return as_asked;
}

}   // namespace

int micro_command(Words words, std::ostream& out, std::ostream& err) {
    const std::string verb = words.empty() ? "" : words.front();
    if (verb == "shapes") return shapes(words.subspan(1), out, err);
    if (verb == "reconcile") return reconcile(words.subspan(1), out, err);
    if (verb == "--help" || verb == "-h" || verb == "help") {
        out << help;
        return as_asked;
    }
    return misused(err, verb.empty() ? "shapes or reconcile?" : "knows no verb " + printable(verb, 60));
}

}   // namespace campaign::agent
