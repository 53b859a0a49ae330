// `adapt`: how a unit's server would be given its profiler, from files that say what was seen of the unit.

#include "adapters/adapt/case_files.hpp"
#include "base/text.hpp"
#include "ctl/verbs.hpp"

namespace campaign::ctl {
namespace {

std::string words(const json::value* list) {
    std::string text;
    if (list == nullptr || !list->is_array()) return "-";
    for (const json::value& word : list->get_array())
        if (word.is_string()) text += (text.empty() ? "" : " ") + printable(std::string_view{word.get_string()}, 2000);
    return text;
}

std::string for_people(const json::value& found) {
    const auto text = [&](std::string_view key) { return printable(string_at(found, key).value_or("-"), 300); };
    const json::value& adapt = *member(found, "adapt");
    const std::string kind = string_at(adapt, "kind").value_or("");
    std::string out = text("unit") + ": server " + text("server") + ", started " + text("how") + "\n";
    out += "  runs     " + words(member(found, "server_argv")) + "\n";
    if (kind == "refuse") {
        out += "  refused  " + printable(string_at(adapt, "code").value_or(""), 60) + "\n";
        return out + "  why      " + printable(string_at(adapt, "reason").value_or(""), 2000) + "\n";
    }
    if (kind == "none") {
        out += "  change   none: the server profiles as it runs\n";
    } else {
        out += "  change   " + kind + ", " + printable(string_at(adapt, "path").value_or(""), 300) + "\n";
        if (const json::value* lines = member(adapt, "lines"); lines != nullptr && lines->is_array())
            for (const json::value& line : lines->get_array())
                out += "    " + printable(std::string_view{line.get_string()}, 4000) + "\n";
        out += "  traces   " + text("profiler_dir") + "\n";
    }
    out += "  then     " + words(member(found, "effective_argv_after")) + "\n";
    if (const json::value* cautions = member(found, "cautions"); cautions != nullptr && cautions->is_array())
        for (const json::value& caution : cautions->get_array())
            out += "  note     " + printable(std::string_view{caution.get_string()}, 500) + "\n";
    return out;
}

}   // namespace

Exit adapt_unit(Session& session) {
    const Result<campaign::adapt::Case> found = campaign::adapt::read_case(session.options.file);
    if (!found) return fail(session, found.error());
    const json::object result = campaign::adapt::adapt(found->unit, found->facts, found->ask);
    return answer(session, result, [](const json::value& value, const Style&) { return for_people(value); });
}

}   // namespace campaign::ctl
