// Our verdict on each plan file of some folders, and the file's content as JSON for a checker that knows only the schema.
// One line of JSON a file: {"file":..., "value":... or null, "found":[{"code","line","column","width","hint"}]}.

#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "base/json.hpp"
#include "plans/parse.hpp"

namespace {

using namespace campaign;

/// YAML 1.2's meaning of a plain scalar, written independently of the parser under test.
json::value scalar(const YAML::Node& node) {
    const std::string& text = node.Scalar();
    if (node.Tag() == "!") return json::value(text);
    if (text == "true" || text == "false") return text == "true";
    if (text.empty() || text == "~" || text == "null") return nullptr;
    boost::system::error_code fault;
    const json::value number = json::parse(text, fault);   // JSON's grammar of numbers: no leading zeros, no hexadecimal
    if (!fault && number.is_number() && text.find_first_of("eE ") == std::string::npos) return number;
    return json::value(text);
}

json::value convert(const YAML::Node& node) {
    if (node.IsScalar()) return scalar(node);
    if (node.IsSequence()) {
        json::array out;
        for (const YAML::Node& item : node) out.push_back(convert(item));
        return out;
    }
    if (node.IsMap()) {
        json::object out;
        for (const auto& entry : node) out[entry.first.IsScalar() ? entry.first.Scalar() : "?"] = convert(entry.second);
        return out;
    }
    return nullptr;
}

}   // namespace

int main(int argc, char** argv) {
    if (argc > 1 && std::string_view{argv[1]} == "--schema") {
        std::cout << plans::json_schema();
        return 0;
    }
    if (argc == 3 && std::string_view{argv[1]} == "--render") {
        std::ifstream in{argv[2], std::ios::binary};
        const std::string yaml{std::istreambuf_iterator<char>{in}, {}};
        const auto result = plans::parse(yaml);
        if (const auto* found = std::get_if<plans::Diagnostics>(&result))
            std::cout << plans::render(*found, std::filesystem::path{argv[2]}.filename().string(), yaml);
        return 0;
    }
    for (int i = 1; i < argc; ++i) {
        for (const auto& entry : std::filesystem::directory_iterator{argv[i]}) {
            if (entry.path().extension() != ".yaml") continue;
            std::ifstream in{entry.path(), std::ios::binary};
            const std::string yaml{std::istreambuf_iterator<char>{in}, {}};
            json::object line{{"file", entry.path().filename().string()}, {"value", nullptr}};
            try {
                line["value"] = convert(YAML::Load(yaml));
            } catch (const YAML::Exception&) {
                line["value"] = nullptr;
            }
            json::array found;
            const auto result = plans::parse(yaml);
            if (const auto* wrong = std::get_if<plans::Diagnostics>(&result)) {
                for (const plans::Diagnostic& one : *wrong) {
                    found.push_back(json::object{{"code", one.code},
                                                 {"line", one.line},
                                                 {"column", one.column},
                                                 {"width", one.width},
                                                 {"message", one.message},
                                                 {"hint", one.hint}});
                }
            }
            // What is no text is no YAML either, whatever the library makes of it.
            for (const json::value& one : found)
                if (one.at("code") == "P005") line["value"] = nullptr;
            line["found"] = std::move(found);
            std::cout << json::serialize(line) << "\n";
        }
    }
}
