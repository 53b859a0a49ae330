#include "base/json.hpp"
#include "plans/description.hpp"
#include "plans/parse.hpp"

namespace campaign::plans {
namespace {

json::object schema_of(const Section& section);

json::array words_of(std::span<const std::string_view> words) {
    json::array out;
    for (const std::string_view word : words) out.emplace_back(word);
    return out;
}

json::object text_like(std::string_view pattern) {
    return {{"type", "string"}, {"pattern", pattern}};
}

json::object number_within(const Key& key) {
    return {{"type", "integer"}, {"minimum", key.least}, {"maximum", key.most}};
}

json::object list_of(json::object items) {
    return {{"type", "array"}, {"minItems", 1}, {"maxItems", longest_list}, {"items", std::move(items)}};
}

/// A default as JSON, as a plan would have it.
json::value value_of(const Key& key) {
    if (key.type == Type::boolean) return key.fallback == "true";
    if (key.type == Type::integer) return json::parse(key.fallback);
    return json::value(key.fallback);
}

json::object type_of(const Key& key) {
    switch (key.type) {
        case Type::text: {
            json::object out = text_like(key.form->pattern);
            out["maxLength"] = longest_text;
            return out;
        }
        case Type::word: return {{"type", "string"}, {"enum", words_of(key.words)}};
        case Type::boolean: return {{"type", "boolean"}};
        case Type::integer: return number_within(key);
        case Type::duration: {
            json::object out = text_like("^([0-9]+([.][0-9]+)?(ms|s|m|h|d))+$");
            out["maxLength"] = 24;
            return out;
        }
        case Type::levels:
            return {
                {"anyOf", json::array{json::object{{"const", "auto"}}, number_within(key), list_of(number_within(key))}}};
        case Type::words: {
            json::object out = list_of({{"type", "string"}, {"enum", words_of(key.words)}});
            out["uniqueItems"] = true;
            return out;
        }
        case Type::arguments: return list_of({{"type", json::array{"string", "number", "boolean"}}});
        case Type::table:
            return {{"type", "object"},
                    {"maxProperties", longest_list},
                    {"propertyNames", json::object{{"pattern", key.form->pattern}}},
                    {"additionalProperties", json::object{{"type", json::array{"string", "number", "boolean"}}}}};
        case Type::section: return schema_of(*key.section);
        case Type::named:
            return {{"type", "object"},
                    {"minProperties", 1},
                    {"maxProperties", longest_list},
                    {"propertyNames", json::object{{"pattern", key.form->pattern}}},
                    {"additionalProperties", schema_of(*key.section)}};
        case Type::list: return list_of(schema_of(*key.section));
    }
    return {};
}

const Key& key_of(const Section& section, std::string_view name) {
    for (const Key& key : section.keys)
        if (key.name == name) return key;
    return section.keys.front();
}

json::object given(const Section& section, std::string_view name) {
    json::object out{{"required", json::array{name}}};
    if (key_of(section, name).type == Type::boolean) out["properties"] = json::object{{name, json::object{{"const", true}}}};
    return out;
}

json::object schema_of(const Section& section) {
    json::object properties;
    json::array required;
    for (const Key& key : section.keys) {
        json::object property = type_of(key);
        property["description"] = key.doc;
        if (!key.fallback.empty()) property["default"] = value_of(key);
        properties[key.name] = std::move(property);
        if (key.required) required.emplace_back(key.name);
    }
    json::object out{{"type", "object"}, {"additionalProperties", false}, {"properties", std::move(properties)}};
    if (!required.empty()) out["required"] = std::move(required);
    json::array all;
    for (const Choice& choice : section.choices) {
        json::array either{given(section, choice.first), given(section, choice.second)};
        if (choice.required) {
            all.push_back(json::object{{"oneOf", std::move(either)}});
        } else {
            all.push_back(json::object{{"not", json::object{{"allOf", std::move(either)}}}});
        }
    }
    if (!all.empty()) out["allOf"] = std::move(all);
    return out;
}

}   // namespace

std::string json_schema() {
    json::object out{{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", "campaignd plan"}};
    for (auto& [key, value] : schema_of(description())) out[key] = value;
    std::string text = pretty(out);
    if (!text.ends_with('\n')) text += '\n';
    return text;
}

}   // namespace campaign::plans
