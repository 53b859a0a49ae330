#include <algorithm>
#include <array>

#include "plans/parse.hpp"

namespace campaign::plans {
namespace {

struct Explained {
    std::string_view code;
    std::string_view title;
    std::string_view text;
    std::string_view wrong;
    std::string_view right;
};

constexpr std::array codes{
    Explained{"P001", "not readable as YAML",
              "The text breaks a rule of YAML at this place. What stands below it was not checked.",
              "policy:\n  restart: ask\n   max_downtime: 90m", "policy:\n  restart: ask\n  max_downtime: 90m"},
    Explained{
        "P002", "a quote is not closed in its line",
        "An open quote would swallow the text up to the next quote, or the rest of the file, and with it keys such as\n"
        "`policy`. Quoted text stays in one line; longer text is written as a block with `|`.",
        "description: \"decode step", "description: \"decode step\""},
    Explained{"P003", "brackets that do not match",
              "A `[` or `{` is never closed, or closed by the other kind, or closed without being opened.",
              "gpu1: {ssh: gpu1", "gpu1: {ssh: gpu1}"},
    Explained{"P004", "a tab in the indentation", "YAML is indented with blanks. Tabs are as wide as each editor likes.",
              "policy:\n\trestart: ask", "policy:\n  restart: ask"},
    Explained{"P005", "not a text file", "A plan is UTF-8 text without byte order mark, NUL bytes or control characters.",
              "a binary or UTF-16 file", "iconv -f UTF-16 -t UTF-8 plan.yaml"},
    Explained{"P006", "too large",
              "A plan has at most 1 MiB, 8192 bytes a line, 16 levels, 20000 values and 1000 entries in a list. Real ones "
              "have a few dozen lines.",
              "a log file given as a plan", "the plan"},
    Explained{
        "P007", "not exactly one plan",
        "The file is empty, or holds a second document which would be lost: after a `---`, or because a line does not\n"
        "belong to what stands above it.",
        "- a\nb: 1", "list:\n  - a\nb: 1"},
    Explained{"P008", "given twice", "Of two equal keys, phases of one name or methods in a ladder, one would be ignored.",
              "policy: {restart: never, restart: ask}", "policy: {restart: ask}"},
    Explained{"P009", "YAML features that plans do without",
              "Anchors, aliases, merge keys, tags and directives make a plan say things far from where it says them.",
              "b: *defaults", "b: {ssh: gpu2}"},
    Explained{"P010", "wrong type",
              "The value is of another type than the key needs. Numbers and true or false are not text unless quoted; "
              "`yes`, `on`,\n"
              "`010` and `0x10` are text.",
              "sudo: yes", "sudo: true"},
    Explained{"P011", "a key is missing", "The key has no default, so it must be given.", "phases:\n  - name: how-fast",
              "phases:\n  - name: how-fast\n    measure: throughput"},
    Explained{"P012", "unknown key",
              "No such key exists here. Unknown keys are refused, since a slip would silently leave the default in force.",
              "policy: {max_downtme: 80m}", "policy: {max_downtime: 80m}"},
    Explained{"P013", "unknown word", "The key takes one of a few words.", "restart: sometimes", "restart: window"},
    Explained{"P014", "out of range", "The number is smaller or larger than makes sense here.", "port: 70000", "port: 22"},
    Explained{"P015", "not a duration", "Durations carry their unit: ms, s, m, h or d. They may be put together: 1h30m.",
              "max_downtime: 90", "max_downtime: 90m"},
    Explained{"P016", "wrong form",
              "The text does not have the form that the key needs. Names are small letters, digits and `-`.",
              "campaign: My Plan", "campaign: my-plan"},
    Explained{"P017", "a name that leads nowhere",
              "A service names its host, a phase its service. The name must be a key of `hosts` or `services`.",
              "services:\n  kimi: {host: gpu2, ...}", "services:\n  kimi: {host: gpu1, ...}"},
    Explained{"P018", "the policy contradicts itself",
              "What one key allows, another forbids: a restart without downtime, a window that nothing uses, less downtime "
              "than the\n"
              "two model loads that a restart with a profiler costs (there and back).",
              "policy: {restart: ask}", "policy: {restart: ask, max_downtime: 90m}"},
    Explained{"P019", "a phase or limit contradicts the rest",
              "The time limit is shorter than the model load that the phase waits for, a method does not answer the phase's "
              "question,\n"
              "or a limit leaves no time at all.",
              "measure: throughput\nmethods: [nsys]", "measure: decode-step\nmethods: [nsys, macro]"},
    Explained{"P020", "one of two",
              "Exactly one of two keys is needed (or at most one): `ssh` or `local`, `unit` or `process`, `requests` or "
              "`duration`.",
              "gpu1: {ssh: gpu1, local: true}", "gpu1: {ssh: gpu1}"},
    Explained{"P021", "a secret in the plan",
              "Plans are copied, mailed and kept in the journal. A secret is given by reference only: a file on the "
              "daemon's machine,\n"
              "or the name of a systemd credential. Replace a secret that was written down.",
              "api_key: (the key itself)", "api_key: {credential: kimi}"},
    Explained{"P022", "not a server's address",
              "The address as seen on the server's own host: scheme, host and port, without user, password or path.",
              "url: \"127.0.0.1:8000/v1\"", "url: \"http://127.0.0.1:8000\""},
    Explained{"P023", "nothing in it", "A list or group that needs at least one entry has none.", "phases: []",
              "phases:\n  - {name: how-fast, measure: throughput}"},
};

std::string indented(std::string_view text) {
    std::string out = "    ";
    for (const char c : text) {
        out += c;
        if (c == '\n') out += "    ";
    }
    return out + "\n";
}

}   // namespace

std::string explain_code(std::string_view code) {
    const auto found = std::ranges::find(codes, code, &Explained::code);
    if (found == codes.end()) return {};
    return std::string{found->code} + ": " + std::string{found->title} + "\n\n" + std::string{found->text} +
           "\n\n  wrong\n" + indented(found->wrong) + "  right\n" + indented(found->right);
}

}   // namespace campaign::plans
